/* SPDX-License-Identifier: ISC */
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/settings.h"

#define OTHER_FILES 64 /* of a worker, besides those of its transfers */

int fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *err)
{
	struct fw_store_config sc = {.url = c->store,
		.flags = flags,
		.async_commit = c->async_commit,
		.page_cache_bytes = (size_t)c->page_cache_bytes,
		.revisions_max = (uint32_t)c->revisions_max,
		.account_feeds_max = c->account_feeds_max,
		.revision_max_bytes = (size_t)c->revision_max_bytes,
		.clock = c->store_clock};

	return fw_store_open(&sc, out, err);
}

int fw_settings_workers(const struct fw_config *c)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (c->workers > 0)
		return (int)c->workers;
	return cores > 3 ? (int)(cores / 2) : 1; /* a worker has two busy threads */
}

int64_t fw_settings_files(int64_t transfers)
{
	return 2 * transfers + OTHER_FILES;
}

int64_t fw_settings_transfers(int64_t files)
{
	return FW_MAX((files - OTHER_FILES) / 2, 1);
}

enum fw_plan_policy fw_settings_order(const struct fw_config *c)
{
	enum fw_plan_policy p;

	return c->order && fw_plan_policy_find(fw_str(c->order), &p) ? p : FW_PLAN_HOST_PATH;
}

void fw_settings_plan(const struct fw_config *c, uint32_t slots, struct fw_plan_rules *out)
{
	*out = (struct fw_plan_rules){.policy = fw_settings_order(c),
		.slots = slots,
		.host_concurrency = (uint32_t)c->host_concurrency,
		.host_gap_us = c->host_gap_ms * 1000,
		.batch = (uint32_t)c->order_batch};
}

int64_t fw_settings_batch(const struct fw_config *c, int64_t slots)
{
	if (!fw_plan_is_batch(fw_settings_order(c)))
		return 0;
	return c->order_batch ? c->order_batch : slots;
}

struct fw_limits fw_settings_limits(const struct fw_config *c)
{
	return (struct fw_limits){.max_bytes = (size_t)c->max_body_bytes, .max_entries = (uint32_t)c->max_entries};
}

int fw_settings_net(const struct fw_config *c, uint32_t slots, struct fw_net *out, struct fw_err *err)
{
	const char *contact = c->contact_url;
	bool fits;
	int rc = fw_guard_init(&out->guard, c->allow_networks, err);

	rc = rc ? rc : fw_guard_deny(&out->guard, c->deny_networks, err);
	if (rc)
		return rc;
	if (c->user_agent)
		fits = fw_snprintf(out->user_agent, sizeof(out->user_agent), "%s", c->user_agent);
	else
		fits = fw_snprintf(out->user_agent, sizeof(out->user_agent), "feedwheel/%s%s%s%s", fw_version(),
			contact ? " (+" : "", contact ? contact : "", contact ? ")" : "");
	if (!fits)
		return fw_err_set(err, FW_EINVAL, "user_agent or contact_url is longer than %zu bytes",
			sizeof(out->user_agent) - 40);
	fw_fetch_config_default(&out->fetch);
	out->fetch.guard = &out->guard;
	out->fetch.clock = c->store_clock;
	out->fetch.user_agent = out->user_agent;
	out->fetch.max_in_flight = slots;
	out->fetch.address_concurrency = (uint32_t)c->address_concurrency;
	out->fetch.max_redirects = (uint32_t)c->max_redirects;
	out->fetch.connect_timeout_ms = c->connect_timeout_ms;
	out->fetch.first_byte_timeout_ms = c->first_byte_timeout_ms;
	out->fetch.total_timeout_ms = c->total_timeout_ms;
	out->fetch.low_speed_bytes = c->low_speed_bytes;
	out->fetch.low_speed_ms = c->low_speed_ms;
	out->fetch.max_body_bytes = (size_t)c->max_body_bytes;
	out->fetch.max_compression_ratio = (uint32_t)c->max_compression_ratio;
	out->fetch.max_header_bytes = (size_t)c->max_header_bytes;
	out->fetch.dns_servers = c->dns_servers;
	out->fetch.ca_file = c->ca_file;
	out->fetch.proxy = c->proxy;
	out->fetch.http2 = c->http2;
	out->fetch.max_buffered_bytes = (size_t)c->max_buffered_bytes;
	return 0;
}
