/*
 * What the process tells its supervisor, by the datagrams of sd_notify(3): to the socket that NOTIFY_SOCKET names. Without one these
 * do nothing.
 */
#ifndef PROCESS_NOTIFY_H
#define PROCESS_NOTIFY_H

void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);

#endif
