//! A translation layer on flash, as the engine drives it.

use super::{Backend, HostWrite, Told, check, rows};
use crate::device::nand::{LogicalPage, NandCounts};
use crate::label::{Cause, Content, Tally};
use crate::report::{FlashResult, SumCheck, TranslationResult, Wear, wear_bins};
use crate::run::engine::{RunError, Served};
use crate::time::Time;
use crate::translation::{Requests, Translation};
use crate::units::BLOCK_BYTES;

/// The counters of the drive when counting began.
#[derive(Default)]
struct Baseline {
    sent: Tally,
    flash: NandCounts,
    events: Vec<(&'static str, u64)>,
}

/// A translation layer on flash.
pub struct DriveBackend<L> {
    layer: L,
    requests: Requests,
    page_bytes: u64,
    baseline: Baseline,
}

impl<L: Translation> DriveBackend<L> {
    pub fn new(layer: L) -> DriveBackend<L> {
        let page_bytes = layer.flash().geometry.page_bytes;
        let mut backend = DriveBackend {
            layer,
            requests: Requests::new(page_bytes),
            page_bytes: page_bytes.into(),
            baseline: Baseline::default(),
        };
        backend.begin_counting();
        backend
    }

    fn wear(&self, amplification: Option<f64>) -> Wear {
        let flash = self.layer.flash();
        let counts = flash.erase_counts;
        let max = counts.iter().copied().max().unwrap_or(0);
        let tib = (1u64 << 40) as f64;
        let endurance = f64::from(flash.endurance);
        let host_bytes = self.layer.sent().of_cause(Cause::HostWrite) as f64 * self.page_bytes as f64;
        Wear {
            erase_count_min: counts.iter().copied().min().unwrap_or(0),
            erase_count_mean: counts.iter().map(|&count| f64::from(count)).sum::<f64>() / counts.len() as f64,
            erase_count_max: max,
            endurance: flash.endurance,
            worn_out_blocks: counts.iter().filter(|&&count| count >= flash.endurance).count() as u64,
            lifetime_host_tib: amplification.map(|wa| flash.geometry.raw_bytes() as f64 * endurance / wa / tib),
            lifetime_host_tib_first_block: (max > 0).then(|| host_bytes * endurance / f64::from(max) / tib),
            histogram: wear_bins(counts),
        }
    }

    /// The sums that hold in every run.
    fn sums(&self, served: &Served, sent: &Tally, programmed: &Tally) -> Vec<SumCheck> {
        let host_pages: u64 = served.written.iter().map(|(_, pages)| pages).sum();
        let same_contents = Content::ALL
            .into_iter()
            .all(|content| sent.get(Cause::HostWrite, content) == served.written[content as usize].1);
        let flash = self.layer.flash();
        let layer = self.layer.name();
        let there_now: u64 = flash.programmed_pages.iter().map(|&pages| u64::from(pages)).sum();
        let erases: u64 = flash.erase_counts.iter().map(|&count| u64::from(count)).sum();
        let per_block = u64::from(flash.geometry.pages_per_block);
        vec![
            check(
                format!("pages that {layer} received = pages that the workload wrote, for each content"),
                sent.of_cause(Cause::HostWrite),
                host_pages,
                same_contents,
            ),
            check(
                format!("pages that nand programmed = pages that {layer} sent, for each cause and content"),
                programmed.total(),
                sent.total(),
                programmed == sent,
            ),
            check(
                "pages programmed since new + pages erased without = blocks erased x pages per block + pages programmed now",
                flash.counts.programmed.total() + flash.counts.erased_unprogrammed,
                erases * per_block + there_now,
                true,
            ),
            check("blocks erased = the sum of the erase counts", flash.counts.erased_blocks, erases, true),
        ]
    }
}

impl<L: Translation> Backend for DriveBackend<L> {
    #[inline]
    fn is_timed(&self) -> bool {
        L::TIMED
    }

    #[inline]
    fn unit_bytes(&self) -> u64 {
        self.page_bytes
    }

    fn exported_bytes(&self) -> u64 {
        self.layer.exported_pages() * self.page_bytes
    }

    #[inline]
    fn prefetch(&self, offset: u64) {
        self.layer.prefetch(self.requests.first_page(offset));
    }

    /// If nothing is in flight, the layer has the time for itself.
    #[inline]
    fn work(&mut self, last_done: Time, at: Time) -> Result<(), RunError> {
        if L::TIMED && at > last_done {
            self.layer.idle(last_done, at)?;
        }
        Ok(())
    }

    #[inline]
    fn write(&mut self, range: (u64, u64), write: HostWrite, at: Time) -> Result<Time, RunError> {
        let page = (write.content, write.stream, write.stamp);
        Ok(self.requests.write(&mut self.layer, range, page, at)?)
    }

    #[inline]
    fn read(&mut self, range: (u64, u64), at: Time, mut see: impl FnMut(u64, Option<u32>)) -> Result<Time, RunError> {
        Ok(self.requests.read(&mut self.layer, range, at, |page, stamp| see(page.0.into(), stamp))?)
    }

    fn discard(&mut self, (offset, length): (u64, u64), at: Time) -> Result<(std::ops::Range<u64>, Time), RunError> {
        let pages = self.requests.covered(offset, length);
        let mut done = at;
        for page in pages.clone() {
            done = done.max(self.layer.discard(LogicalPage(page), at)?);
        }
        Ok((pages.start.into()..pages.end.into(), done))
    }

    /// Writes are on flash when they are done: a flush costs nothing itself.
    fn flush(&mut self, at: Time) -> Result<Time, RunError> {
        Ok(at)
    }

    fn begin_counting(&mut self) {
        self.baseline = Baseline {
            sent: self.layer.sent().clone(),
            flash: self.layer.flash().counts.clone(),
            events: self.layer.events(),
        };
    }

    fn stored_bytes(&self) -> u64 {
        let programmed = self.layer.flash().counts.programmed.total() - self.baseline.flash.programmed.total();
        programmed * self.page_bytes
    }

    fn tell(&self, served: &Served) -> Told {
        let flash = self.layer.flash();
        let programmed = flash.counts.programmed.since(&self.baseline.flash.programmed);
        let read = flash.counts.read.since(&self.baseline.flash.read);
        let sent = self.layer.sent().since(&self.baseline.sent);
        let written_bytes = served.written_blocks * BLOCK_BYTES;
        let amplification = (written_bytes > 0).then(|| self.stored_bytes() as f64 / written_bytes as f64);
        let events = self.layer.events().into_iter().zip(&self.baseline.events);
        let stations = [(self.layer.name(), &sent), ("nand", &programmed)];
        Told {
            census: None,
            warnings: Vec::new(),
            ledger: stations.iter().flat_map(|(station, tally)| rows(station, tally, self.page_bytes)).collect(),
            media: vec!["nand".to_string()],
            flash: FlashResult {
                programmed_pages: programmed.total(),
                read_pages: read.total(),
                erased_blocks: flash.counts.erased_blocks - self.baseline.flash.erased_blocks,
                effective_overprovisioning: Some(self.layer.effective_overprovisioning()),
                page_bytes: self.page_bytes,
                pages_per_block: u64::from(flash.geometry.pages_per_block),
                blocks: u64::from(flash.geometry.blocks),
                raw_bytes: flash.geometry.raw_bytes(),
                exported_bytes: self.exported_bytes(),
                mapping_ram_bytes: Some(self.layer.mapping_ram_bytes()),
            },
            translation: TranslationResult {
                station: self.layer.name().to_string(),
                mapping_reads: of_mapping(&read),
                events: events.map(|((name, now), (_, then))| (name.to_string(), now - then)).collect(),
            },
            wear: self.wear(amplification),
            sums: self.sums(served, &sent, &programmed),
        }
    }
}

/// The count of what is mapping, over all causes.
fn of_mapping(tally: &Tally) -> u64 {
    tally.entries().filter(|(_, content, _)| *content == Content::Mapping).map(|(.., count)| count).sum()
}
