// Opened by failing_new.
void wait_for_the_thread(void);

__attribute__((constructor)) static void construct(void) { wait_for_the_thread(); }
