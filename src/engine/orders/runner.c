/* SPDX-License-Identifier: ISC */
/* The sender's end of the runner: jobs go out as frames, and end by a reply or by their time. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/orders/runner_process.h"

#define LATE_CHECK_MS 500

struct runner_wait {
	uint64_t id; /* 0: free */
	int64_t until_ms;
	runner_done_fn *done;
	void *ctx;
};

struct runner {
	uv_poll_t poll;
	uv_timer_t timer;
	int fd, handle_n;
	bool closing, gone; /* gone: nobody is left at the other end */
	uint64_t client, last_id;
	size_t n;
	struct runner_wait wait[RUNNER_JOBS_MAX];
};

static int own_fd = -1;

int runner_fd(void)
{
	return own_fd;
}

void runner_fd_set(int fd)
{
	own_fd = fd;
}

/* ---- ends of jobs ---------------------------------------------------------------------------- */

static void wait_end(struct runner *r, struct runner_wait *w, bool accepted, int status, struct fw_str error)
{
	struct fw_buf words = FW_BUF_INIT(4 * RUNNER_ERROR_MAX);
	struct runner_wait was = *w;

	*w = (struct runner_wait){.id = 0};
	if (--r->n == 0)
		uv_timer_stop(&r->timer);
	/* the last line of a program may be anything */
	fw_log_escape(&words, error);
	was.done(was.ctx, &(struct runner_result){.accepted = accepted, .status = status, .error = fw_buf_str(&words)});
	fw_buf_finish(&words);
}

static void runner_reply(struct runner *r, struct runner_reply *a)
{
	a->error[sizeof(a->error) - 1] = 0;
	for (size_t i = 0; i < RUNNER_JOBS_MAX && a->client == r->client && a->id; i++) {
		if (r->wait[i].id == a->id) {
			wait_end(r, &r->wait[i], a->accepted == 1, a->status, fw_str(a->error));
			return;
		}
	}
}

/* End the jobs whose time is over; INT64_MAX: all. */
static void runner_end_late(struct runner *r, int64_t now_ms, struct fw_str why)
{
	for (size_t i = 0; i < RUNNER_JOBS_MAX && !r->closing; i++) {
		if (r->wait[i].id && r->wait[i].until_ms <= now_ms)
			wait_end(r, &r->wait[i], false, 0, why);
	}
}

static void runner_on_timer(uv_timer_t *t)
{
	runner_end_late(t->data, fw_mono_ms(), FW_STR("no result in time: the runner was killed"));
}

static void runner_on_frame(uv_poll_t *p, int status, int events)
{
	struct runner *r = p->data;
	struct runner_reply a;
	ssize_t n = 0;

	(void)events;
	while (!r->closing && status >= 0 && (n = recv(r->fd, &a, sizeof(a), MSG_DONTWAIT)) > 0) {
		if (n == sizeof(a))
			runner_reply(r, &a);
	}
	if (r->closing || (status >= 0 && n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	r->gone = true; /* readable for ever */
	uv_poll_stop(p);
	runner_end_late(r, INT64_MAX, FW_STR("the runner has ended"));
}

/* ---- start and end --------------------------------------------------------------------------- */

static void runner_on_close(uv_handle_t *h)
{
	struct runner *r = h->data;

	if (--r->handle_n == 0)
		free(r);
}

static void runner_release(struct runner *r)
{
	r->closing = true;
	uv_close((uv_handle_t *)&r->poll, runner_on_close);
	uv_close((uv_handle_t *)&r->timer, runner_on_close);
}

int runner_open(uv_loop_t *loop, int fd, struct runner **out, struct fw_err *err)
{
	struct runner *r = calloc(1, sizeof(*r));
	int rc;

	*out = NULL;
	if (!r)
		return fw_no_memory(err);
	r->fd = fd;
	rc = getentropy(&r->client, sizeof(r->client)) ? -errno : uv_poll_init(loop, &r->poll, fd);
	if (rc) {
		free(r);
		return fw_err_set(err, FW_EIO, "runner not opened: %s", strerror(-rc));
	}
	rc = uv_timer_init(loop, &r->timer);
	assert(!rc);
	r->poll.data = r->timer.data = r;
	r->handle_n = 2;
	rc = uv_poll_start(&r->poll, UV_READABLE, runner_on_frame);
	if (rc) {
		runner_release(r);
		return fw_err_set(err, FW_EIO, "runner not opened: %s", uv_strerror(rc));
	}
	*out = r;
	return 0;
}

/* The input as a file without a name; or -1 with errno. */
static int input_open(struct fw_str input)
{
	int fd = memfd_create("feedwheel-message", MFD_CLOEXEC), rc;

	if (fd < 0)
		return -1;
	rc = input.len ? fw_write_all(fd, input.p, input.len) : 0;
	if (!rc && lseek(fd, 0, SEEK_SET) < 0)
		rc = errno;
	if (!rc)
		return fd;
	close(fd);
	errno = rc;
	return -1;
}

static int frame_send(int to, const struct fw_buf *frame, int file)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = frame->p, .iov_len = frame->len};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (file >= 0) {
		struct cmsghdr *c;

		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &file, sizeof(file));
	}
	return sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

static int job_send(struct runner *r, const struct runner_job *job, uint64_t id, struct fw_err *err)
{
	const struct fw_str text[RUNNER_TEXTS] = {
		job->command.p ? job->command : job->path, job->order, job->message_id};
	struct runner_frame h = {.client = r->client,
		.id = id,
		.timeout_ms = job->timeout_ms,
		.kind = job->command.p ? RUNNER_COMMAND : RUNNER_APPEND};
	struct fw_buf b = FW_BUF_INIT(RUNNER_FRAME_MAX);
	int fd, rc;

	for (size_t i = 0; i < RUNNER_TEXTS; i++)
		h.len[i] = (uint32_t)FW_MIN(text[i].len, (size_t)UINT32_MAX);
	fw_buf_add(&b, &h, sizeof(h));
	for (size_t i = 0; i < RUNNER_TEXTS; i++)
		fw_buf_addstr(&b, text[i]);
	if (b.rc) {
		rc = fw_err_set(err, b.rc, b.rc == FW_ENOMEM ? "out of memory" : "the command is too long");
		fw_buf_finish(&b);
		return rc;
	}
	fd = input_open(job->input);
	rc = fd < 0 ? errno : frame_send(r->fd, &b, fd);
	if (fd >= 0)
		close(fd);
	fw_buf_finish(&b);
	if (rc)
		return fw_err_set(
			err, rc == EAGAIN ? FW_EAGAIN : FW_EIO, "job not given to the runner: %s", strerror(rc));
	return 0;
}

int runner_start(struct runner *r, const struct runner_job *job, struct fw_err *err)
{
	struct runner_wait *w = r->wait;
	int rc;

	assert(!r->closing && job->done && job->timeout_ms > 0 && !job->command.p != !job->path.p);
	if (r->gone)
		return fw_err_set(err, FW_EIO, "job not given to the runner: it has ended");
	if (r->n == RUNNER_JOBS_MAX)
		return fw_err_set(err, FW_EAGAIN, "%d commands run already", RUNNER_JOBS_MAX);
	while (w->id)
		w++;
	rc = job_send(r, job, r->last_id + 1, err);
	if (rc)
		return rc;
	*w = (struct runner_wait){.id = ++r->last_id,
		.until_ms = fw_mono_ms() + job->timeout_ms + RUNNER_KILL_MS + RUNNER_LATE_MS,
		.done = job->done,
		.ctx = job->ctx};
	if (r->n++ == 0)
		uv_timer_start(&r->timer, runner_on_timer, LATE_CHECK_MS, LATE_CHECK_MS);
	return 0;
}

void runner_close(struct runner *r)
{
	struct runner_frame h = {.kind = RUNNER_END};

	if (!r)
		return;
	h.client = r->client;
	if (r->n && !r->gone) /* without a runner that reads it the jobs have ended too */
		(void)frame_send(r->fd, &(struct fw_buf){.p = (char *)&h, .len = sizeof(h)}, -1);
	runner_release(r);
}
