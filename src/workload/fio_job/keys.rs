//! The keys of fio (3.33, and later ones of data placement): honoured, ignored or refused.

/// The treatment of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It shapes the requests.
    Honoured,
    /// It is about how fio reaches the device or what it reports, which the path and the report decide here.
    Ignored,
    /// It would change the requests and is not implemented. The values of `unless` switch it off and are accepted.
    Refused { unless: &'static str, because: &'static str },
}

/// The honoured keys, with the canonical name of each.
const HONOURED: [(&str, &str); 54] = [
    ("ba", "blockalign"),
    ("blockalign", "blockalign"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("bs", "bs"),
    ("bs_is_seq_rand", "bs_is_seq_rand"),
    ("bs_unaligned", "bs_unaligned"),
    ("bsrange", "bsrange"),
    ("bssplit", "bssplit"),
    ("dataplacement", "dataplacement"),
    ("end_fsync", "end_fsync"),
    ("fdatasync", "fdatasync"),
    ("fdp", "fdp"),
    ("fdp_pli", "plids"),
    ("fdp_pli_select", "plid_select"),
    ("filename", "filename"),
    ("filesize", "filesize"),
    ("fsync", "fsync"),
    // The one file is closed once.
    ("fsync_on_close", "end_fsync"),
    ("io_limit", "io_size"),
    ("io_size", "io_size"),
    ("ioengine", "ioengine"),
    ("iodepth", "iodepth"),
    ("loops", "loops"),
    ("max_open_zones", "max_open_zones"),
    ("norandommap", "norandommap"),
    ("number_ios", "number_ios"),
    ("numjobs", "numjobs"),
    ("offset", "offset"),
    ("offset_increment", "offset_increment"),
    ("percentage_random", "percentage_random"),
    ("random_distribution", "random_distribution"),
    ("plid_select", "plid_select"),
    ("plids", "plids"),
    ("randseed", "randseed"),
    ("rate_iops", "rate_iops"),
    ("rate_process", "rate_process"),
    ("readwrite", "rw"),
    ("runtime", "runtime"),
    ("rw", "rw"),
    ("rwmixread", "rwmixread"),
    ("rwmixwrite", "rwmixwrite"),
    ("size", "size"),
    ("stonewall", "stonewall"),
    ("time_based", "time_based"),
    ("timeout", "runtime"),
    ("wait_for_previous", "stonewall"),
    ("write_hint", "write_hint"),
    ("zonecapacity", "zonecapacity"),
    ("zonemode", "zonemode"),
    ("zonerange", "zonerange"),
    ("zonesize", "zonesize"),
    ("zoneskip", "zoneskip"),
];

/// Keys about reaching the device, measuring and printing, and those that only tune a refused key.
const IGNORED: &str = "\
    allow_file_create allow_mounted_write allrandrepeat atomic block_error_percentiles buffer_compress_chunk \
    buffer_compress_percentage buffer_pattern buffered bwavgtime cgroup cgroup_nodelete cgroup_weight clat_percentiles \
    clocksource continue_on_error cpuload cpumask cpus_allowed cpus_allowed_policy create_fsync create_on_open \
    create_only create_serialize dedupe_global dedupe_mode dedupe_percentage dedupe_working_set_percentage description \
    direct directory disable_bw disable_bw_measurement disable_clat disable_lat disable_slat disk_util do_verify \
    error_dump exec_postrun exec_prerun exitall_on_error experimental_verify fadvise_hint fallocate file_service_type \
    filename_format fixedbufs force_async gid group_reporting gtod_cpu gtod_reduce hipri \
    hipri_percentage hugepage-size ignore_error ignore_zone_limits invalidate io_submit_mode iodepth_batch iodepth_batch_complete \
    iodepth_batch_complete_max iodepth_batch_complete_min iodepth_batch_submit iodepth_low iomem iomem_align \
    iopsavgtime ioscheduler lat_percentiles lockfile lockmem log_alternate_epoch log_alternate_epoch_clock_id \
    log_avg_msec log_compression log_compression_cpus log_entries log_hist_coarseness log_hist_msec log_max_value \
    log_offset log_prio log_store_compressed log_unix_epoch max_latency mem mem_align merge_blktrace_iters \
    merge_blktrace_scalars name new_group nice nonvectored \
    nowait numa_cpu_nodes numa_mem_policy openfiles overwrite per_job_logs percentile_list prio prioclass \
    random_generator randrepeat rate_ignore_thinktime \
    read_iolog_chunked refill_buffers registerfiles replay_align replay_no_stall replay_redirect replay_scale \
    replay_skip replay_time_scale scramble_buffers serialize_overlap significant_figures \
    slat_percentiles softrandommap sqthread_poll sqthread_poll_cpu stats steadystate_duration \
    steadystate_ramp_time thinktime_blocks_type thread trim_backlog_batch trim_verify_zero uid uncached \
    unified_rw_reporting unique_filename unit_base unlink unlink_each_loop userspace_reap verify verify_async \
    verify_async_cpus verify_backlog verify_backlog_batch verify_dump verify_fatal verify_interval verify_offset \
    verify_pattern verify_state_load verify_state_save write_bw_log write_hist_log write_iolog write_iops_log \
    write_lat_log zero_buffers zone_reset_frequency zone_reset_threshold";

const CLOCK: &str = "it depends on the clock, and requests are issued as soon as the queue depth allows; set the amount with io_size, the time with runtime, or the rate with rate_iops";
const REPLAY: &str = "give the log itself as the workload";
const ENDS_EARLY: &str = "it ends jobs by measurements; use io_size instead";

/// The key, the values that switch it off (joined by |), and the reason for refusing it.
const REFUSED: [(&str, &str, &str); 43] = [
    ("dp_scheme", "", "give the identifiers in plids"),
    ("exitall", "0", ENDS_EARLY),
    ("exit_what", "", ENDS_EARLY),
    ("file_append", "0", "a device has no end to append to; use offset"),
    ("fill_device", "0", "use size"),
    ("fill_fs", "0", "use size"),
    ("flow", "0", CLOCK),
    ("flow_id", "0", CLOCK),
    ("flow_sleep", "0", CLOCK),
    ("job_max_open_zones", "0", "use max_open_zones, which holds for all jobs"),
    ("kb_base", "1024", "sizes are binary"),
    ("latency_percentile", "100", ENDS_EARLY),
    ("latency_run", "0", ENDS_EARLY),
    ("latency_target", "0", ENDS_EARLY),
    ("latency_window", "0", ENDS_EARLY),
    ("merge_blktrace_file", "", REPLAY),
    ("nrfiles", "1", "there is one device; write one job for each region"),
    ("offset_align", "0", "offsets in percent are aligned to the block size"),
    ("opendir", "", "there is one device"),
    ("pre_read", "0", "use rw=read in a job of its own, and stonewall in the next"),
    ("profile", "", "write its jobs out"),
    ("ramp_time", "0", CLOCK),
    ("rate", "0", "give the rate of requests in rate_iops"),
    ("rate_cycle", "", CLOCK),
    ("rate_iops_min", "0", CLOCK),
    ("rate_min", "0", CLOCK),
    ("read_iolog", "", REPLAY),
    ("read_beyond_wp", "0", "reads stay below the write pointer; without a job that writes they go everywhere"),
    ("rw_sequencer", "sequential", "offset modifiers are not implemented"),
    ("startdelay", "0", CLOCK),
    ("start_delay", "0", CLOCK),
    ("steadystate", "", ENDS_EARLY),
    ("sync", "0|none", "use fsync=1, which makes each write durable"),
    ("sync_file_range", "", "use fsync"),
    ("thinktime", "0", CLOCK),
    ("thinktime_blocks", "1", CLOCK),
    ("thinktime_iotime", "0", CLOCK),
    ("thinktime_spin", "0", CLOCK),
    ("trim_backlog", "0", "use rw=trimwrite or a job of its own with rw=trim"),
    ("trim_percentage", "0", "use rw=trimwrite or a job of its own with rw=trim"),
    ("verify_only", "0", "nothing is verified here; use rw=read"),
    ("wait_for", "", "use stonewall"),
    ("write_barrier", "0", "use fsync"),
];

/// The treatment of `key` and its canonical name; `None` if fio 3.33 has no such key for block devices.
pub(super) fn meaning(key: &str) -> Option<(Meaning, &'static str)> {
    if let Some((_, kept)) = HONOURED.iter().find(|(name, _)| *name == key) {
        return Some((Meaning::Honoured, kept));
    }
    if let Some((name, unless, because)) = REFUSED.iter().find(|(name, ..)| *name == key) {
        return Some((Meaning::Refused { unless, because }, name));
    }
    IGNORED.split_whitespace().find(|name| *name == key).map(|name| (Meaning::Ignored, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_key_has_one_meaning() {
        let honoured = HONOURED.iter().map(|(name, _)| *name);
        let refused = REFUSED.iter().map(|(name, ..)| *name);
        let names: Vec<&str> = honoured.chain(refused).chain(IGNORED.split_whitespace()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}
