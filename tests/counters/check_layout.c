/* The parameter blocks that perfkit declares itself (pm_api.h, profiler_api.h) against CUPTI's
 * headers: same size, same places. Compiling is the test. */
#include <cuda.h>
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "collectors/cuda/profiler_api.h"
#include "samplers/counters/pm_api.h"

#define SIZE(ours, last, theirs)                                                                   \
    _Static_assert(PM_SIZE(ours, last) == theirs##_STRUCT_SIZE, "size of " #ours)
#define AT(ours, member, theirs, field)                                                            \
    _Static_assert(offsetof(struct ours, member) == offsetof(theirs, field) &&                     \
                       sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->field),         \
                   #ours "." #member)

SIZE(pm_nothing, priv, CUpti_Profiler_Initialize_Params);
SIZE(pm_nothing, priv, CUpti_Profiler_DeInitialize_Params);

AT(pc_reason, index, CUpti_PCSamplingStallReason, pcSamplingStallReasonIndex);
AT(pc_reason, samples, CUpti_PCSamplingStallReason, samples);
AT(pc_record, crc, CUpti_PCSamplingPCData, cubinCrc);
AT(pc_record, offset, CUpti_PCSamplingPCData, pcOffset);
AT(pc_record, function, CUpti_PCSamplingPCData, functionIndex);
AT(pc_record, name, CUpti_PCSamplingPCData, functionName);
AT(pc_record, count, CUpti_PCSamplingPCData, stallReasonCount);
AT(pc_record, reasons, CUpti_PCSamplingPCData, stallReason);
AT(pc_record, correlation, CUpti_PCSamplingPCData, correlationId);
_Static_assert(sizeof(struct pc_record) == sizeof(CUpti_PCSamplingPCData), "record");
AT(pc_data, room, CUpti_PCSamplingData, collectNumPcs);
AT(pc_data, total, CUpti_PCSamplingData, totalSamples);
AT(pc_data, dropped, CUpti_PCSamplingData, droppedSamples);
AT(pc_data, count, CUpti_PCSamplingData, totalNumPcs);
AT(pc_data, remaining, CUpti_PCSamplingData, remainingNumPcs);
AT(pc_data, records, CUpti_PCSamplingData, pPcData);
AT(pc_data, of_system, CUpti_PCSamplingData, nonUsrKernelsTotalSamples);
AT(pc_data, full, CUpti_PCSamplingData, hardwareBufferFull);
_Static_assert(sizeof(struct pc_data) == sizeof(CUpti_PCSamplingData), "data");
_Static_assert(PM_SIZE(pc_context, context) == CUpti_PCSamplingEnableParamsSize, "enable");
_Static_assert(PM_SIZE(pc_context, context) == CUpti_PCSamplingDisableParamsSize, "disable");
_Static_assert(PM_SIZE(pc_get, data) == CUpti_PCSamplingGetDataParamsSize, "get");
_Static_assert(PM_SIZE(pc_configure, attributes) == CUpti_PCSamplingConfigurationInfoParamsSize,
               "configure");
_Static_assert(PM_SIZE(pc_reason_count, count) == CUpti_PCSamplingGetNumStallReasonsParamsSize,
               "number of reasons");
_Static_assert(PM_SIZE(pc_reason_names, names) == CUpti_PCSamplingGetStallReasonsParamsSize,
               "reasons");
_Static_assert(sizeof(struct pc_attribute) == sizeof(CUpti_PCSamplingConfigurationInfo),
               "attribute");
AT(pc_attribute, room, CUpti_PCSamplingConfigurationInfo, attributeData);

SIZE(pm_chip_name, name, CUpti_Device_GetChipName_Params);
AT(pm_chip_name, device, CUpti_Device_GetChipName_Params, deviceIndex);
AT(pm_chip_name, name, CUpti_Device_GetChipName_Params, pChipName);

SIZE(pm_host_open, host, CUpti_Profiler_Host_Initialize_Params);
AT(pm_host_open, profiler, CUpti_Profiler_Host_Initialize_Params, profilerType);
AT(pm_host_open, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
AT(pm_host_open, availability, CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage);
AT(pm_host_open, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);
_Static_assert((int)PM_PROFILER_PM_SAMPLING == (int)CUPTI_PROFILER_TYPE_PM_SAMPLING, "profiler");

SIZE(pm_host_close, host, CUpti_Profiler_Host_Deinitialize_Params);
AT(pm_host_close, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);

SIZE(pm_host_add, count, CUpti_Profiler_Host_ConfigAddMetrics_Params);
AT(pm_host_add, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject);
AT(pm_host_add, metrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
AT(pm_host_add, count, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);

SIZE(pm_host_config_size, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params);
AT(pm_host_config_size, host, CUpti_Profiler_Host_GetConfigImageSize_Params, pHostObject);
AT(pm_host_config_size, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);

SIZE(pm_host_config, config, CUpti_Profiler_Host_GetConfigImage_Params);
AT(pm_host_config, host, CUpti_Profiler_Host_GetConfigImage_Params, pHostObject);
AT(pm_host_config, bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
AT(pm_host_config, config, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);

SIZE(pm_host_passes, passes, CUpti_Profiler_Host_GetNumOfPasses_Params);
AT(pm_host_passes, bytes, CUpti_Profiler_Host_GetNumOfPasses_Params, configImageSize);
AT(pm_host_passes, config, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
AT(pm_host_passes, passes, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);

SIZE(pm_host_evaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
AT(pm_host_evaluate, host, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject);
AT(pm_host_evaluate, image, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
AT(pm_host_evaluate, image_bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
   counterDataImageSize);
AT(pm_host_evaluate, sample, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
AT(pm_host_evaluate, metrics, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
AT(pm_host_evaluate, count, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
AT(pm_host_evaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);

SIZE(pm_enable, sampling, CUpti_PmSampling_Enable_Params);
AT(pm_enable, device, CUpti_PmSampling_Enable_Params, deviceIndex);
AT(pm_enable, sampling, CUpti_PmSampling_Enable_Params, pPmSamplingObject);

SIZE(pm_object, sampling, CUpti_PmSampling_Disable_Params);
SIZE(pm_object, sampling, CUpti_PmSampling_Start_Params);
SIZE(pm_object, sampling, CUpti_PmSampling_Stop_Params);
AT(pm_object, sampling, CUpti_PmSampling_Disable_Params, pPmSamplingObject);
AT(pm_object, sampling, CUpti_PmSampling_Start_Params, pPmSamplingObject);
AT(pm_object, sampling, CUpti_PmSampling_Stop_Params, pPmSamplingObject);

SIZE(pm_availability, image, CUpti_PmSampling_GetCounterAvailability_Params);
AT(pm_availability, device, CUpti_PmSampling_GetCounterAvailability_Params, deviceIndex);
AT(pm_availability, bytes, CUpti_PmSampling_GetCounterAvailability_Params,
   counterAvailabilityImageSize);
AT(pm_availability, image, CUpti_PmSampling_GetCounterAvailability_Params,
   pCounterAvailabilityImage);

SIZE(pm_set_config, append, CUpti_PmSampling_SetConfig_Params);
AT(pm_set_config, sampling, CUpti_PmSampling_SetConfig_Params, pPmSamplingObject);
AT(pm_set_config, bytes, CUpti_PmSampling_SetConfig_Params, configSize);
AT(pm_set_config, config, CUpti_PmSampling_SetConfig_Params, pConfig);
AT(pm_set_config, hardware_bytes, CUpti_PmSampling_SetConfig_Params, hardwareBufferSize);
AT(pm_set_config, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
AT(pm_set_config, trigger, CUpti_PmSampling_SetConfig_Params, triggerMode);
AT(pm_set_config, append, CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
_Static_assert((int)PM_TRIGGER_SYSCLK == (int)CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL &&
                   (int)PM_TRIGGER_TIME == (int)CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL,
               "trigger");
_Static_assert((int)PM_KEEP_OLDEST ==
                       (int)CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST &&
                   (int)PM_KEEP_LATEST ==
                       (int)CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST,
               "append");

SIZE(pm_image_size, bytes, CUpti_PmSampling_GetCounterDataSize_Params);
AT(pm_image_size, sampling, CUpti_PmSampling_GetCounterDataSize_Params, pPmSamplingObject);
AT(pm_image_size, metrics, CUpti_PmSampling_GetCounterDataSize_Params, pMetricNames);
AT(pm_image_size, count, CUpti_PmSampling_GetCounterDataSize_Params, numMetrics);
AT(pm_image_size, samples, CUpti_PmSampling_GetCounterDataSize_Params, maxSamples);
AT(pm_image_size, bytes, CUpti_PmSampling_GetCounterDataSize_Params, counterDataSize);

SIZE(pm_image_init, image, CUpti_PmSampling_CounterDataImage_Initialize_Params);
AT(pm_image_init, sampling, CUpti_PmSampling_CounterDataImage_Initialize_Params, pPmSamplingObject);
AT(pm_image_init, bytes, CUpti_PmSampling_CounterDataImage_Initialize_Params, counterDataSize);
AT(pm_image_init, image, CUpti_PmSampling_CounterDataImage_Initialize_Params, pCounterData);

SIZE(pm_decode, overflow, CUpti_PmSampling_DecodeData_Params);
AT(pm_decode, sampling, CUpti_PmSampling_DecodeData_Params, pPmSamplingObject);
AT(pm_decode, image, CUpti_PmSampling_DecodeData_Params, pCounterDataImage);
AT(pm_decode, bytes, CUpti_PmSampling_DecodeData_Params, counterDataImageSize);
AT(pm_decode, stop_reason, CUpti_PmSampling_DecodeData_Params, decodeStopReason);
AT(pm_decode, overflow, CUpti_PmSampling_DecodeData_Params, overflow);

SIZE(pm_image_info, completed, CUpti_PmSampling_GetCounterDataInfo_Params);
AT(pm_image_info, image, CUpti_PmSampling_GetCounterDataInfo_Params, pCounterDataImage);
AT(pm_image_info, bytes, CUpti_PmSampling_GetCounterDataInfo_Params, counterDataImageSize);
AT(pm_image_info, total, CUpti_PmSampling_GetCounterDataInfo_Params, numTotalSamples);
AT(pm_image_info, populated, CUpti_PmSampling_GetCounterDataInfo_Params, numPopulatedSamples);
AT(pm_image_info, completed, CUpti_PmSampling_GetCounterDataInfo_Params, numCompletedSamples);

SIZE(pm_sample_info, end, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
AT(pm_sample_info, sampling, CUpti_PmSampling_CounterData_GetSampleInfo_Params, pPmSamplingObject);
AT(pm_sample_info, image, CUpti_PmSampling_CounterData_GetSampleInfo_Params, pCounterDataImage);
AT(pm_sample_info, bytes, CUpti_PmSampling_CounterData_GetSampleInfo_Params, counterDataImageSize);
AT(pm_sample_info, sample, CUpti_PmSampling_CounterData_GetSampleInfo_Params, sampleIndex);
AT(pm_sample_info, start, CUpti_PmSampling_CounterData_GetSampleInfo_Params, startTimestamp);
AT(pm_sample_info, end, CUpti_PmSampling_CounterData_GetSampleInfo_Params, endTimestamp);

_Static_assert(PM_INVALID_OPERATION == (int)CUPTI_ERROR_INVALID_OPERATION &&
                   PM_HARDWARE_BUSY == (int)CUPTI_ERROR_HARDWARE_BUSY &&
                   PM_NOT_SUPPORTED == (int)CUPTI_ERROR_NOT_SUPPORTED &&
                   PM_NO_PRIVILEGE == (int)CUPTI_ERROR_INSUFFICIENT_PRIVILEGES &&
                   PM_VIRTUAL_NO_PRIVILEGE ==
                       (int)CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES &&
                   PM_CONFIDENTIAL == (int)CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED &&
                   PM_MIG == (int)CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED &&
                   PM_WSL == (int)CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED,
               "results");

SIZE(range_availability, image, CUpti_Profiler_GetCounterAvailability_Params);
AT(range_availability, context, CUpti_Profiler_GetCounterAvailability_Params, ctx);
AT(range_availability, bytes, CUpti_Profiler_GetCounterAvailability_Params,
   counterAvailabilityImageSize);
AT(range_availability, image, CUpti_Profiler_GetCounterAvailability_Params,
   pCounterAvailabilityImage);

SIZE(range_enable, profiler, CUpti_RangeProfiler_Enable_Params);
AT(range_enable, context, CUpti_RangeProfiler_Enable_Params, ctx);
AT(range_enable, profiler, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);
SIZE(range_object, profiler, CUpti_RangeProfiler_Disable_Params);
SIZE(range_object, profiler, CUpti_RangeProfiler_Start_Params);
AT(range_object, profiler, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);

SIZE(range_image_size, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params);
AT(range_image_size, metrics, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
AT(range_image_size, count, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics);
AT(range_image_size, ranges, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
AT(range_image_size, nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
AT(range_image_size, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);

SIZE(range_image_init, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
AT(range_image_init, bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params,
   counterDataSize);
AT(range_image_init, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData);

SIZE(range_config, level, CUpti_RangeProfiler_SetConfig_Params);
AT(range_config, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
AT(range_config, bytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
AT(range_config, image_bytes, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize);
AT(range_config, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
AT(range_config, range, CUpti_RangeProfiler_SetConfig_Params, range);
AT(range_config, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
AT(range_config, ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
AT(range_config, levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
AT(range_config, first_level, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
AT(range_config, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
AT(range_config, level, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel);

SIZE(range_stop, all_passes, CUpti_RangeProfiler_Stop_Params);
AT(range_stop, pass, CUpti_RangeProfiler_Stop_Params, passIndex);
AT(range_stop, level, CUpti_RangeProfiler_Stop_Params, targetNestingLevel);
AT(range_stop, all_passes, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);

SIZE(range_decode, dropped, CUpti_RangeProfiler_DecodeData_Params);
AT(range_decode, dropped, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);

SIZE(range_image_info, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params);
AT(range_image_info, image, CUpti_RangeProfiler_GetCounterDataInfo_Params, pCounterDataImage);
AT(range_image_info, bytes, CUpti_RangeProfiler_GetCounterDataInfo_Params, counterDataImageSize);
AT(range_image_info, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges);

_Static_assert(RANGE_OF_KERNEL == (int)CUPTI_AutoRange &&
                   RANGE_REPLAY_OF_KERNEL == (int)CUPTI_KernelReplay &&
                   RANGE_PROFILER == (int)CUPTI_PROFILER_TYPE_RANGE_PROFILER,
               "modes");
