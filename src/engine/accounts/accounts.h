/* SPDX-License-Identifier: ISC */
/* What the files of accounts share: accounts.c, account_token.c, password.c, subscribe_all.c. */
#ifndef FW_ENGINE_ACCOUNTS_H
#define FW_ENGINE_ACCOUNTS_H

#include "store/accounts.h"

#define ACCOUNT_PASSWORD_HASH_MAX 128 /* text and NUL */
#define ACCOUNT_USE_STEP_MS 300000    /* the time of last use is written so often at most */

/* Hash a password: 19 MiB, about 30 ms. Its length is checked. */
int account_password_hash(struct fw_str password, char out[ACCOUNT_PASSWORD_HASH_MAX], struct fw_err *err);
/* Is it this one? hash absent: no, in the same time. */
bool account_password_is(struct fw_str password, struct fw_str hash);

/* FW_EINVAL with the rule. */
int account_name_check(struct fw_str name, struct fw_err *err);

#endif
