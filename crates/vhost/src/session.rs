//! One client: its memory, and its queues, each with a thread.

use crate::answers::{Answer, Answers, give, notify};
use crate::disk::{Disk, QUEUE_ENTRIES, QUEUES};
use crate::error::SessionError;
use crate::request::{Requests, Target};
use flashpath::run::shared::SharedDevice;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vhost::vhost_user::VhostUserProtocolFeatures;
use vhost_user_backend::{VhostUserBackend, VhostUserDaemon, VringMutex, VringT};
use virtio_bindings::virtio_blk::VIRTIO_BLK_F_FLUSH;
use virtio_queue::QueueOwnedT;
use vm_memory::{GuestAddressSpace, GuestMemoryAtomic, GuestMemoryMmap};
use vmm_sys_util::epoll::EventSet;
use vmm_sys_util::event::{EventConsumer, EventFlag, EventNotifier, new_event_consumer_and_notifier};

/// The number of the event that ends a queue's thread: the first that no queue has.
const END: u64 = QUEUES as u64 + 1;
/// The descriptors of a queue's thread: what it waits with, and both ends of the library's event of an enabled ring.
const OF_A_THREAD: usize = 3;
/// Answers that are given before the guest is woken, if more requests wait.
const ANSWERS_AT_ONCE: usize = 16;

/// The memory that the client shares.
pub type Memory = GuestMemoryAtomic<GuestMemoryMmap>;

/// A client's session.
pub struct Session {
    device: Arc<SharedDevice>,
    disk: Disk,
    memory: Memory,
    /// Locked while requests of the queue are served.
    queues: Vec<Mutex<Requests>>,
    /// With pacing.
    answers: Option<Answers>,
    writes_through: AtomicBool,
    is_ending: AtomicBool,
    end: (EventConsumer, EventNotifier),
}

impl Session {
    /// A session on this device, whose serial number follows from `name`.
    pub fn new(device: Arc<SharedDevice>, name: &str) -> io::Result<Arc<Session>> {
        let sharing = device.sharing();
        Ok(Arc::new(Session {
            disk: Disk::new(device.size_bytes(), sharing.read_only, name),
            memory: Memory::new(GuestMemoryMmap::new()),
            queues: (0..QUEUES).map(|_| Mutex::default()).collect(),
            answers: sharing.paced.then(|| Answers::new(QUEUES)),
            writes_through: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            end: new_event_consumer_and_notifier(EventFlag::NONBLOCK | EventFlag::CLOEXEC)?,
            device,
        }))
    }

    /// Starts the threads of the queues, which [`end`](Session::end) ends.
    ///
    /// # Errors
    ///
    /// The system lacks descriptors or threads, or the library fails.
    pub fn start(self: &Arc<Self>) -> Result<VhostUserDaemon<Arc<Session>>, SessionError> {
        // The library leaves the threads that it began, with their descriptors, if there is none for the next one: so there must be
        // enough for all before it begins.
        let all = (0..QUEUES * OF_A_THREAD).map(|_| eventfd(0, EventfdFlags::CLOEXEC));
        drop(all.collect::<Result<Vec<OwnedFd>, _>>().map_err(io::Error::from)?);
        let daemon = VhostUserDaemon::new("vhost-user".to_string(), Arc::clone(self), self.memory.clone())?;
        for thread in daemon.get_epoll_handlers() {
            // The library's own event for this would stay open after the session.
            let listening = thread.register_listener(self.end.0.as_raw_fd(), EventSet::IN, END);
            listening.map_err(vhost_user_backend::Error::StartDaemon)?;
        }
        Ok(daemon)
    }

    /// Gives answers at their time, until the session ends. Without pacing there is nothing to do.
    pub fn give_answers(&self) {
        if let Some(answers) = &self.answers {
            answers.give_all(&self.device);
        }
    }

    /// Takes no more requests, and waits until those that were taken are answered.
    pub fn finish(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        (0..QUEUES).for_each(|queue| drop(self.queue(queue)));
        self.answers.iter().for_each(|answers| answers.wait(0..QUEUES));
    }

    /// The client is gone: drops its answers, and ends the threads.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        self.answers.iter().for_each(Answers::abandon);
        // It cannot fail: it is the only notice.
        let _ = self.end.1.notify();
    }

    fn queue(&self, number: usize) -> MutexGuard<'_, Requests> {
        // The lists of a request that panicked are made anew by the next.
        self.queues[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves the requests that wait in a queue, until there are none.
    fn serve(&self, ring: &VringMutex, number: usize) -> Result<(), virtio_queue::Error> {
        let mut requests = self.queue(number);
        loop {
            ring.disable_notification()?;
            self.serve_waiting(ring, number, &mut requests)?;
            if self.is_ending() || !ring.enable_notification()? {
                return Ok(());
            }
        }
    }

    /// Serves the requests that wait, and wakes the guest for all that were answered, also if the ring was stopped or is wrong.
    fn serve_waiting(
        &self,
        ring: &VringMutex,
        number: usize,
        requests: &mut Requests,
    ) -> Result<(), virtio_queue::Error> {
        let mut given = 0usize;
        let ended = loop {
            match self.serve_next(ring, number, requests) {
                Ok(true) => given += 1,
                ended => break ended,
            }
            if given.is_multiple_of(ANSWERS_AT_ONCE) && self.answers.is_none() {
                notify(ring);
            }
        };
        if !given.is_multiple_of(ANSWERS_AT_ONCE) && self.answers.is_none() {
            notify(ring);
        }
        ended.map(|_| ())
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// Serves one request; false if there is none, or no more are taken.
    fn serve_next(
        &self,
        ring: &VringMutex,
        queue: usize,
        requests: &mut Requests,
    ) -> Result<bool, virtio_queue::Error> {
        if self.is_ending() {
            return Ok(false);
        }
        let memory = self.memory.memory();
        // The ring must be locked no longer: another thread may give an answer of it.
        let next = ring.get_mut().get_queue_mut().iter(memory.clone())?.next();
        let Some(chain) = next else { return Ok(false) };
        let head = chain.head_index();
        let taken = requests.chain.take(&memory, chain);
        let writes_through = self.writes_through.load(Ordering::Relaxed);
        let target = Target { device: &self.device, disk: &self.disk, memory: &memory, writes_through };
        let served = requests.serve(taken, &target);
        let written = served.written;
        match &self.answers {
            Some(answers) => answers.add(served.done, Answer { queue, ring: ring.clone(), head, written }),
            None => give(ring, head, written),
        }
        Ok(true)
    }
}

impl VhostUserBackend for Session {
    type Bitmap = ();
    type Vring = VringMutex;

    fn num_queues(&self) -> usize {
        QUEUES
    }

    fn max_queue_size(&self) -> usize {
        QUEUE_ENTRIES
    }

    fn features(&self) -> u64 {
        self.disk.features
    }

    fn acked_features(&self, features: u64) {
        self.writes_through.store(features & 1 << VIRTIO_BLK_F_FLUSH == 0, Ordering::Relaxed);
    }

    fn protocol_features(&self) -> VhostUserProtocolFeatures {
        VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
    }

    // The rings have been told.
    fn set_event_idx(&self, _enabled: bool) {}

    fn get_config(&self, offset: u32, size: u32) -> Vec<u8> {
        self.disk.configuration(offset, size)
    }

    // The memory was handed in, and its owner replaces the regions.
    fn update_memory(&self, _memory: Memory) -> io::Result<()> {
        Ok(())
    }

    fn queues_per_thread(&self) -> Vec<u64> {
        (0..QUEUES).map(|queue| 1 << queue).collect()
    }

    fn stop_vring(&self, queue: u32) -> io::Result<()> {
        let queue = queue as usize;
        drop(self.queue(queue));
        self.answers.iter().for_each(|answers| answers.wait(queue..queue + 1));
        Ok(())
    }

    fn handle_event(&self, event: u16, _set: EventSet, rings: &[VringMutex], thread: usize) -> io::Result<()> {
        let Some(ring) = rings.get(usize::from(event)) else {
            // An error ends the thread.
            return Err(io::ErrorKind::ConnectionAborted.into());
        };
        // A guest that has made its ring unusable is no longer served by it; the thread goes on, as the ring may be set up anew.
        let _ = self.serve(ring, thread);
        Ok(())
    }
}
