//! `flashpath convert`.

use super::bench::{Bench, DRIVE, HEADER};

#[test]
fn a_trace_that_goes_to_parquet_and_back_is_the_same() {
    let bench = Bench::new();
    bench.write("t.txt", "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n");
    let mut text = String::new();
    for n in 0..3000u64 {
        let kind = if n % 3 == 0 { "Read" } else { "Write" };
        let time = 128166372003061629 + n * 317;
        text.push_str(&format!("{time},usr,0,{kind},{},{},1331\n", n * 7919 % 2000 * 4096, 4096 * (1 + n % 4)));
    }
    bench.write("t.txt", text);
    for (from, to) in [("t.txt", "a.csv"), ("a.csv", "b.parquet"), ("b.parquet", "c.csv"), ("c.csv", "d.csv.gz")] {
        let answer = bench.flashpath(&["convert", from, to]);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), ""), "{answer:?}");
        assert!(answer.stderr.contains("3000 operations") && answer.stderr.contains(&format!("wrote {to}")));
    }
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    assert!(read("a.csv").starts_with(HEADER));
    assert_eq!(read("a.csv"), read("c.csv"));
    let first = bench.json("t.txt", DRIVE, &["--repeat", "9"]);
    for name in ["a.csv", "b.parquet", "d.csv.gz"] {
        let result = bench.json(name, DRIVE, &["--repeat", "9"]);
        for part in ["flash", "wear", "ledger", "write_amplification"] {
            assert_eq!(result[part], first[part], "{name} {part}");
        }
    }
}

#[test]
fn a_conversion_that_fails_leaves_everything_as_it_was() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 5000);
    bench.write("noise", "this is\nno trace\n");
    assert_eq!(bench.flashpath(&["convert", "t.csv", "whole.csv.gz"]).code, Some(0));
    let whole = std::fs::read(bench.path("whole.csv.gz")).unwrap();
    bench.write("cut.csv.gz", &whole[..whole.len() - 100]);
    std::fs::create_dir(bench.path("directory.csv")).unwrap();
    let before = (bench.files(), std::fs::read(bench.path("t.csv")).unwrap());
    for (from, to, expected) in [
        ("t.csv", "./t.csv", "is the input trace"),
        ("t.csv", "nowhere/o.csv", "cannot write it"),
        ("t.csv", "directory.csv", "cannot write it"),
        ("t.csv", "o.txt", "NAME.parquet"),
        ("noise", "o.csv", "unknown format"),
        ("cut.csv.gz", "o.csv", "cut.csv.gz"),
        ("cut.csv.gz", "o.parquet", "cut.csv.gz"),
        ("missing", "o.csv", "missing"),
    ] {
        bench.refuses(&["convert", from, to], &[expected]);
        assert_eq!((bench.files(), std::fs::read(bench.path("t.csv")).unwrap()), before, "{from} to {to}");
    }
}

/// A drive of MQSim, as far as the path needs it.
const CONFIGURATION: &str = "<Execution_Parameter_Set><Device_Parameter_Set>
<Memory_Type>FLASH</Memory_Type><Caching_Mechanism>SIMPLE</Caching_Mechanism>
<Data_Cache_Capacity>1048576</Data_Cache_Capacity><Data_Cache_DRAM_Data_Rate>800</Data_Cache_DRAM_Data_Rate>
<Ideal_Mapping_Table>true</Ideal_Mapping_Table><CMT_Capacity>2097152</CMT_Capacity>
<Plane_Allocation_Scheme>CWDP</Plane_Allocation_Scheme><Overprovisioning_Ratio>0.2</Overprovisioning_Ratio>
<GC_Exec_Threshold>0.001</GC_Exec_Threshold><GC_Block_Selection_Policy>GREEDY</GC_Block_Selection_Policy>
<Flash_Channel_Count>1</Flash_Channel_Count><Flash_Channel_Width>1</Flash_Channel_Width>
<Channel_Transfer_Rate>333</Channel_Transfer_Rate><Chip_No_Per_Channel>1</Chip_No_Per_Channel>
<Flash_Parameter_Set><Flash_Technology>SLC</Flash_Technology><CMD_Suspension_Support>NONE</CMD_Suspension_Support>
<Page_Read_Latency_LSB>25000</Page_Read_Latency_LSB><Page_Read_Latency_CSB>25000</Page_Read_Latency_CSB>
<Page_Read_Latency_MSB>25000</Page_Read_Latency_MSB><Page_Program_Latency_LSB>200000</Page_Program_Latency_LSB>
<Page_Program_Latency_CSB>200000</Page_Program_Latency_CSB><Page_Program_Latency_MSB>200000</Page_Program_Latency_MSB>
<Block_Erase_Latency>1500000</Block_Erase_Latency><Block_PE_Cycles_Limit>100000</Block_PE_Cycles_Limit>
<Die_No_Per_Chip>1</Die_No_Per_Chip><Plane_No_Per_Die>1</Plane_No_Per_Die><Block_No_Per_Plane>256</Block_No_Per_Plane>
<Page_No_Per_Block>64</Page_No_Per_Block><Page_Capacity>4096</Page_Capacity></Flash_Parameter_Set>
</Device_Parameter_Set></Execution_Parameter_Set>";

#[test]
fn a_drive_of_mqsim_is_a_path_that_runs() {
    let bench = Bench::new();
    bench.write("ssdconfig.xml", CONFIGURATION);
    let answer = bench.flashpath(&["convert", "ssdconfig.xml"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stderr.contains("a flow with Device_Level_Data_Caching_Mode=TURNED_OFF bypasses the cache"),
        "{answer:?}"
    );
    let path = answer.stdout.trim();
    assert!(path.starts_with("cache:size=1048576,access=2560ns/page:export=80%,victim=greedy,reserve=16,ahead=0/nand:size=67108864,page=4K,"), "{path}");
    let result = bench.json("uniform:writes=2x", path, &["--fill"]);
    assert!(result["write_amplification"]["total"].as_f64().unwrap() > 1.0, "{result}");
    assert_eq!(bench.flashpath(&["convert", "ssdconfig.xml", "drive.path"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(bench.path("drive.path")).unwrap().trim(), path);
    bench.refuses(&["convert", "ssdconfig.xml", "./ssdconfig.xml"], &["would replace it"]);
    bench.write("workload.xml", "<MQSim_IO_Scenarios></MQSim_IO_Scenarios>");
    bench.refuses(&["convert", "workload.xml"], &["no scenario", "IO_Scenario"]);
    bench.write("other.xml", "<Other></Other>");
    bench.refuses(&["convert", "other.xml"], &["ssdconfig.xml"]);
    bench.write_trace("t.csv", 10);
    bench.refuses(&["convert", "t.csv"], &["no file to write"]);
}

/// A flow of MQSim's workload.xml, with these parameters in place of others.
fn flow(changes: &[(&str, &str)]) -> String {
    let values = [
        ("Priority_Class", "HIGH"),
        ("Device_Level_Data_Caching_Mode", "TURNED_OFF"),
        ("Channel_IDs", "0,1"),
        ("Chip_IDs", "0"),
        ("Die_IDs", "0"),
        ("Plane_IDs", "0"),
        ("Initial_Occupancy_Percentage", "75"),
        ("Working_Set_Percentage", "50"),
        ("Synthetic_Generator_Type", "QUEUE_DEPTH"),
        ("Read_Percentage", "30"),
        ("Address_Distribution", "RANDOM_UNIFORM"),
        ("Percentage_of_Hot_Region", "0"),
        ("Generated_Aligned_Addresses", "true"),
        ("Address_Alignment_Unit", "8"),
        ("Request_Size_Distribution", "FIXED"),
        ("Average_Request_Size", "8"),
        ("Variance_Request_Size", "0"),
        ("Seed", "798"),
        ("Average_No_of_Reqs_in_Queue", "16"),
        ("Intensity", "32768"),
        ("Stop_Time", "0"),
        ("Total_Requests_To_Generate", "3000"),
    ];
    let value = |name: &str, value: &str| {
        let changed = changes.iter().find(|(changed, _)| *changed == name).map_or(value, |(_, value)| value);
        format!("<{name}>{changed}</{name}>\n")
    };
    let mut text: String = values.iter().map(|(name, text)| value(name, text)).collect();
    let new = changes.iter().filter(|(name, _)| values.iter().all(|(known, _)| known != name));
    text.extend(new.map(|(name, text)| format!("<{name}>{text}</{name}>\n")));
    format!("<IO_Flow_Parameter_Set_Synthetic>\n{text}</IO_Flow_Parameter_Set_Synthetic>\n")
}

fn scenarios(all: &[&[String]]) -> String {
    let scenario = |flows: &&[String]| format!("<IO_Scenario>\n{}</IO_Scenario>\n", flows.concat());
    format!("<MQSim_IO_Scenarios>\n{}</MQSim_IO_Scenarios>\n", all.iter().map(scenario).collect::<String>())
}

#[test]
fn flows_of_mqsim_are_jobs_that_run_side_by_side() {
    let bench = Bench::new();
    let paced = [
        ("Channel_IDs", "1"),
        ("Synthetic_Generator_Type", "BANDWIDTH"),
        ("Bandwidth", "4096000"),
        ("Read_Percentage", "100"),
        ("Address_Distribution", "RANDOM_HOTCOLD"),
        ("Percentage_of_Hot_Region", "20"),
        ("Stop_Time", "500000000"),
    ];
    bench.write("workload.xml", scenarios(&[&[flow(&[]), flow(&paced)]]));
    let answer = bench.flashpath(&["convert", "workload.xml"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    // The first flow shares one of two channels: three quarters of the space are its own.
    let expected = "; scenario 1 of MQSim\n\n[flow0]\noffset=0%\nsize=37.5%\nrw=randrw\nnorandommap=1\nblockalign=4096\n\
                    rwmixread=30\nbs=4096\niodepth=16\nnumber_ios=3000\nio_size=12288000\nrandseed=798\n\n\
                    [flow1]\noffset=75%\nsize=12.5%\nrw=randrw\nnorandommap=1\nblockalign=4096\n\
                    random_distribution=zoned:80/20:20/80\nrwmixread=100\nbs=4096\niodepth=65536\nrate_iops=1000,1\n\
                    rate_process=poisson\nruntime=500000us\ntime_based=1\nrandseed=798\n";
    assert_eq!(answer.stdout, expected);
    for told in ["--fill=75%", "flow 1: line", "Priority_Class=HIGH is left out"] {
        assert!(answer.stderr.contains(told), "{told}: {answer:?}");
    }
    assert!(!answer.stderr.contains("Intensity"), "{answer:?}");
    assert_eq!(bench.flashpath(&["convert", "workload.xml", "flows.fio"]).code, Some(0));
    let result = bench.json("fio:flows.fio", "page/nand:size=128M,channels=2", &["--fill", "75%"]);
    let tenants = result["tenants"].as_array().unwrap();
    assert_eq!((&tenants[0]["name"], &tenants[0]["requests"]), (&"flow0".into(), &3000.into()), "{tenants:?}");
    let paced = tenants[1]["requests"].as_u64().unwrap();
    assert!((430..=570).contains(&paced), "{paced} requests in half a second at 1,000 a second");
    assert!(tenants[1]["latency_ns"]["read"]["p99"].as_u64().unwrap() > 0, "{tenants:?}");
    assert_eq!(result["options"].as_array().unwrap(), &["--fill=75%"]);
}

#[test]
fn a_scenario_is_chosen_and_what_is_no_flow_is_refused() {
    let bench = Bench::new();
    let other = flow(&[("Read_Percentage", "100"), ("Address_Distribution", "STREAMING")]);
    bench.write("workload.xml", scenarios(&[&[flow(&[])], &[other]]));
    bench.refuses(&["convert", "workload.xml"], &["2 scenarios", "--scenario 1"]);
    bench.refuses(&["convert", "workload.xml", "--scenario", "3"], &["2 scenarios"]);
    let second = bench.flashpath(&["convert", "workload.xml", "--scenario", "2"]);
    assert!(second.stdout.contains("rw=rw\nrwmixread=100\n"), "{second:?}");
    for (change, said) in [
        (("Total_Requests_To_Generate", "0"), "has no end"),
        (("Channel_IDs", "0;1"), "Channel_IDs"),
        (("Address_Distribution", "ZIPF"), "RANDOM_HOTCOLD"),
        (("Read_Percentage", "130"), "percentage"),
    ] {
        bench.write("wrong.xml", scenarios(&[&[flow(&[change])]]));
        bench.refuses(&["convert", "wrong.xml"], &[said]);
    }
    let traced = "<IO_Flow_Parameter_Set_Trace_Based><File_Path>a</File_Path></IO_Flow_Parameter_Set_Trace_Based>";
    bench.write("trace.xml", scenarios(&[&[traced.to_string()]]));
    bench.refuses(&["convert", "trace.xml"], &["no synthetic one", "flashpath run FILE"]);
    bench.write("configuration.xml", CONFIGURATION);
    bench.write_trace("t.csv", 10);
    bench.refuses(&["convert", "t.csv", "u.csv", "--scenario", "1"], &["--scenario is of flows"]);
}
