/* SPDX-License-Identifier: ISC */
/*
 * Dates: any bytes get a result, and a parsed date is read back from its RFC 3339 and RFC 822
 * forms.
 */
#include "base/clock.h"
#include "base/str.h"
#include "fuzz.h"
#include "parse/date/date.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[FW_RFC3339_MAX];
	int64_t t, again;

	if (!fw_date_parse((struct fw_str){(const char *)data, size}, &t, NULL))
		return 0;
	FUZZ_CHECK(t >= fw_time_ms(999, 12, 29, 0, 0, 0, 0) && t <= fw_time_ms(10000, 1, 3, 0, 0, 0, 0));
	if (t < fw_time_ms(1000, 1, 1, 0, 0, 0, 0) || t >= fw_time_ms(10000, 1, 1, 0, 0, 0, 0))
		return 0; /* its zone moved it beyond the range of the forms */
	FUZZ_CHECK(fw_date_parse(fw_str(fw_rfc3339(text, t)), &again, NULL) && again == t);
	FUZZ_CHECK(
		fw_date_parse(fw_str(fw_http_date(text, t)), &again, NULL) && again == t - ((t % 1000) + 1000) % 1000);
	return 0;
}
