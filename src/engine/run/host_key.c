/* SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <string.h>

#include "base/cidr.h"
#include "base/str.h"
#include "base/url.h"
#include "engine/run/host_key.h"
#include "feedwheel/store.h"

/* In brackets, so that it cannot equal a name. */
static void host_key_write_address(const unsigned char a[16], char out[HOST_KEY_MAX])
{
	char text[INET6_ADDRSTRLEN] = "";

	if (fw_ip_is4(a))
		(void)inet_ntop(AF_INET, a + 12, text, sizeof(text));
	else
		(void)inet_ntop(AF_INET6, a, text, sizeof(text));
	(void)fw_snprintf(out, HOST_KEY_MAX, "[%s]", text);
}

static bool name_is_under(struct fw_str name, struct fw_str domain)
{
	size_t front = name.len - domain.len;

	return domain.len && name.len >= domain.len && fw_str_ieq(fw_str_sub(name, front, name.len), domain) &&
		(front == 0 || name.p[front - 1] == '.');
}

/*
 * The configured hosting domain above this name, as written in the name; the longest if several
 * match.
 */
static struct fw_str hosting_domain_of(const char *hosting_domains, struct fw_str name)
{
	struct fw_str found = FW_STR_NONE;

	while (hosting_domains && *hosting_domains) {
		struct fw_str one = {hosting_domains, strcspn(hosting_domains, ", \t")};

		if (one.len > found.len && name_is_under(name, one))
			found = fw_str_sub(name, name.len - one.len, name.len);
		hosting_domains += one.len;
		hosting_domains += strspn(hosting_domains, ", \t");
	}
	return found;
}

bool host_key(const struct host_rules *r, struct fw_str url, const unsigned char *address, char out[HOST_KEY_MAX])
{
	char name[HOST_KEY_MAX], known[HOST_KEY_MAX];
	struct fw_str hoster;

	if (!fw_url_host(url, name, sizeof(name)) || !fw_store_host(url, known, sizeof(known)))
		return false;
	if (r->policy == HOST_ADDRESS) {
		if (!address)
			return false;
		host_key_write_address(address, out);
		return true;
	}
	(void)fw_snprintf(out, HOST_KEY_MAX, "%s", r->policy == HOST_NAME ? name : known);
	hoster = r->policy == HOST_DOMAIN ? hosting_domain_of(r->hosting_domains, fw_str(name)) : FW_STR_NONE;
	if (hoster.len)
		(void)fw_snprintf(out, HOST_KEY_MAX, "%.*s", FW_STR_ARG(hoster));
	if (strcmp(out, known) == 0)
		out[0] = '\0';
	return true;
}

/* The key itself, also where fw_store_host() gives the same. */
static bool host_key_full(const struct host_rules *r, struct fw_str url, char out[HOST_KEY_MAX])
{
	return host_key(r, url, NULL, out) && (out[0] || fw_store_host(url, out, HOST_KEY_MAX));
}

bool host_is_same(const struct host_rules *r, struct fw_str a, struct fw_str b)
{
	struct host_rules by_name = {
		.policy = r->policy == HOST_ADDRESS ? HOST_NAME : r->policy, .hosting_domains = r->hosting_domains};
	char x[HOST_KEY_MAX], y[HOST_KEY_MAX];

	return host_key_full(&by_name, a, x) && host_key_full(&by_name, b, y) && strcmp(x, y) == 0;
}
