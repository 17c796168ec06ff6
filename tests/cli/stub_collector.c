/* Stands in for the collector in a sanitizer build, where the real one needs a sanitizer runtime
 * that the recorded programs do not have. Records nothing: perfkit itself is what is tested then.
 */
int InitializeInjectionNvtx2(void *get_export_table);
int clGetLayerInfo(unsigned name, unsigned long size, void *value, unsigned long *size_ret);
int clInitLayer(unsigned entries, const void *target, unsigned *entries_ret, const void **layer);

int InitializeInjectionNvtx2(void *get_export_table)
{
    return get_export_table != 0;
}

int clGetLayerInfo(unsigned name, unsigned long size, void *value, unsigned long *size_ret)
{
    (void)name, (void)size, (void)value, (void)size_ret;
    return -30; /* CL_INVALID_VALUE */
}

int clInitLayer(unsigned entries, const void *target, unsigned *entries_ret, const void **layer)
{
    (void)entries, (void)target, (void)entries_ret, (void)layer;
    return -30;
}
