//! The health of the drives: what the accounts of the stations say of wear and of written media.

use crate::namespace::Drive;
use flashpath::device::Account;
use flashpath::run::shared::{Request, ServeError};
use flashpath::units::BLOCK_BYTES;

/// The figures of some drives together, since they were opened; erases are since they were new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Bytes that hosts wrote.
    pub host_written: u128,
    /// Bytes that hosts read.
    pub host_read: u128,
    /// Commands that wrote.
    pub writes: u128,
    /// Commands that read.
    pub reads: u128,
    /// Bytes that the media programmed or stored.
    pub media_written: u128,
    /// Bytes that were read from the media.
    pub media_read: u128,
    /// The greatest share of the endurance that is used, on average over the blocks of a drive, in percent.
    pub percent_used: u64,
    /// Erases of the most worn block.
    pub most_erases: u32,
    /// Erases of the least worn block.
    pub least_erases: u32,
    /// Requests that a device failed.
    pub failed: u128,
    /// Seconds since the first was opened.
    pub seconds: u64,
    /// True if flash is known.
    pub has_flash: bool,
    /// True if a part is worn out or can only be read.
    pub is_worn: bool,
}

impl Health {
    /// The health of these drives.
    pub fn of<'d>(drives: impl Iterator<Item = &'d Drive>) -> Result<Health, ServeError> {
        let mut health = Health::default();
        for drive in drives {
            let counts = drive.counts()?;
            let (read, write) = (counts.of(Request::Read), counts.of(Request::Write));
            health.host_read += u128::from(read.bytes);
            health.host_written += u128::from(write.bytes);
            health.reads += u128::from(read.served);
            health.writes += u128::from(write.served);
            health.failed += u128::from(counts.failed_in_all());
            health.seconds = health.seconds.max(drive.now().seconds() as u64);
            health.add_media(&drive.account()?);
        }
        Ok(health)
    }

    fn add_media(&mut self, account: &Account) {
        account.below.iter().for_each(|below| self.add_media(below));
        if let Some(flash) = &account.flash {
            self.media_written += u128::from(flash.programmed_pages) * u128::from(flash.page_bytes);
            self.media_read += u128::from(flash.read_pages) * u128::from(flash.page_bytes);
            let most = flash.erase_counts.iter().copied().max().unwrap_or(0);
            let least = flash.erase_counts.iter().copied().min().unwrap_or(0);
            self.least_erases = if self.has_flash { self.least_erases.min(least) } else { least };
            self.most_erases = self.most_erases.max(most);
            self.has_flash = true;
            let erases: u64 = flash.erase_counts.iter().map(|count| u64::from(*count)).sum();
            let endured = flash.erase_counts.len() as u64 * u64::from(flash.endurance);
            self.percent_used = self.percent_used.max((erases * 100).checked_div(endured).unwrap_or(0));
            self.is_worn |= flash.endurance > 0 && least >= flash.endurance;
        } else if account.below.is_empty() {
            let stored: u64 = account.sent.entries().map(|(_, blocks)| blocks).sum();
            self.media_written += u128::from(stored * BLOCK_BYTES);
            self.media_read += u128::from(account.read_blocks * BLOCK_BYTES);
        }
    }
}
