/* SPDX-License-Identifier: ISC */
#include <openssl/evp.h>

#include "http/auth/basic.h"

bool basic_read(struct fw_str header, char buffer[BASIC_MAX], struct fw_str *name, struct fw_str *password)
{
	struct fw_str text, scheme = fw_str_split(fw_str_trim(header), ' ', &text);
	int n;

	*name = *password = FW_STR_NONE;
	text = fw_str_trim(text);
	if (!fw_str_ieq(scheme, FW_STR("Basic")) || !text.len || text.len % 4 || text.len / 4 * 3 > BASIC_MAX)
		return false;
	n = EVP_DecodeBlock((unsigned char *)buffer, (const unsigned char *)text.p, (int)text.len);
	for (size_t pad = 1; n > 0 && pad <= 2 && text.p[text.len - pad] == '='; pad++)
		n--;
	if (n <= 0)
		return false;
	*name = fw_str_split((struct fw_str){buffer, (size_t)n}, ':', password);
	return password->p != NULL;
}
