/* Who may do what: the files with passwords, and listeners that anybody could reach. */
#ifndef CONFIG_ACCESS_H
#define CONFIG_ACCESS_H

#include "config/config.h"

/*
 * Reads the files with passwords to config->users and config->server_login, and checks that no listener is open to everybody by
 * mistake. Must run as the user that starts the daemon, who may read these files; the configuration is complete and does not change
 * afterwards. On an error gives false, with the reason in `error`.
 */
bool config_access(struct config *config, char error[256]) __attribute__((warn_unused_result));

#endif
