//! Policies that are written in Python: groupings and cleaners of `sfs`, and victim policies of `page` and `dftl`.
//!
//! A policy is called for all blocks of a writeback, or for all candidates of cleaning or collection, at once: the columns
//! are bytes, which Python sees as arrays without a copy. The time in Python is counted.
//!
//! The words of policies are a table ([`Tables`]), which grows. A table that was replaced stays until the program ends, as
//! paths refer to it.

use crate::fault;
use flashpath::device::nand::{Geometry, Nand, Timing};
use flashpath::expression::{ExpressionError, Kind, OptionKind, Row, Settings, Term, Values, words_of};
use flashpath::fs::sfs::placement::lives::Lives;
use flashpath::fs::sfs::placement::table::{POLICIES, Policies, ReadCleaner, ReadGrouping};
use flashpath::fs::sfs::placement::{
    BlockView, Cleaner, Grouping, GroupingSettings, MOST_GROUPS, SegmentView, Tick, VolumeShape,
};
use flashpath::fs::sfs::{self, SfsSettings};
use flashpath::fs::station::VolumeSettings;
use flashpath::run::{STATIONS, Station};
use flashpath::translation::dftl::{self, DftlSettings};
use flashpath::translation::page_level::{self, PageSettings, ReadVictim};
use flashpath::translation::{Candidate, FlashLayer, VictimChooser, VictimPolicy, VictimSettings};
use flashpath_sweep::Abandoned;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::Instant;

/// The options of `sfs` that name policies.
const GROUPING: &str = "grouping";
const CLEANER: &str = "cleaner";
/// The option of `page` and `dftl` that does.
const VICTIM: &str = "victim";

/// A policy in Python.
struct PythonPolicy {
    word: &'static str,
    about: &'static str,
    /// The option that names it.
    option: &'static str,
    /// The number of groups of a grouping.
    groups: usize,
    /// Makes the policy of a volume, from a seed: a function of columns.
    make: Py<PyAny>,
    calls: AtomicU64,
    items: AtomicU64,
    nanoseconds: AtomicU64,
}

/// The stations with the policies that are known.
pub struct Tables {
    /// The stations of paths.
    pub stations: &'static [Station],
    sfs: &'static Kind,
    policies: &'static Policies,
    page: &'static Kind,
    dftl: &'static Kind,
    victims: &'static [Row<ReadVictim>],
    python: Vec<Arc<PythonPolicy>>,
}

impl Tables {
    /// True if a path may name a policy in Python.
    pub fn are_named_in(&self, path: &str) -> bool {
        self.python.iter().any(|policy| path.contains(policy.word))
    }
}

static TABLES: LazyLock<RwLock<&'static Tables>> = LazyLock::new(|| RwLock::new(tables_of(Vec::new())));

/// Held while a path is read: its words and the rows that read them are of one table.
static READING: Mutex<()> = Mutex::new(());

/// The table in use.
pub fn tables() -> &'static Tables {
    *TABLES.read().unwrap_or_else(PoisonError::into_inner)
}

/// Reads paths with one table.
pub fn reading<T>(read: impl FnOnce(&'static Tables) -> T) -> T {
    let _reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
    read(tables())
}

fn tables_of(python: Vec<Arc<PythonPolicy>>) -> &'static Tables {
    let of = |option: &'static str| python.iter().filter(move |policy| policy.option == option);
    let groupings =
        of(GROUPING).map(|policy| Row { word: policy.word, about: policy.about, value: read_grouping as ReadGrouping });
    let cleaners =
        of(CLEANER).map(|policy| Row { word: policy.word, about: policy.about, value: read_cleaner as ReadCleaner });
    let policies: &'static Policies = Box::leak(Box::new(Policies {
        groupings: Vec::leak(POLICIES.groupings.iter().copied().chain(groupings).collect()),
        cleaners: Vec::leak(POLICIES.cleaners.iter().copied().chain(cleaners).collect()),
    }));
    let victims =
        of(VICTIM).map(|policy| Row { word: policy.word, about: policy.about, value: read_victim as ReadVictim });
    let victims: &'static [Row<ReadVictim>] = Vec::leak(page_level::VICTIMS.iter().copied().chain(victims).collect());
    let option = |name: &str| *sfs::KIND.options.iter().find(|option| option.name == name).expect("sfs has it");
    let sfs = sfs::KIND.with_options(vec![
        OptionKind { values: Values::Choice(|| words_of(tables().policies.groupings)), ..option(GROUPING) },
        OptionKind { values: Values::Choice(|| words_of(tables().policies.cleaners)), ..option(CLEANER) },
    ]);
    let with_victims = |kind: &Kind| {
        let victim = *kind.options.iter().find(|option| option.name == VICTIM).expect("it collects garbage");
        kind.with_options(vec![OptionKind { values: Values::Choice(|| words_of(tables().victims)), ..victim }])
    };
    let (page, dftl) = (with_victims(&page_level::KIND), with_victims(&dftl::KIND));
    // Without own victims the stations are the library's, page with reclaim units among them.
    let has_victims = victims.len() > page_level::VICTIMS.len();
    let stations = STATIONS.iter().map(|station| match station.kind.name {
        name if name == sfs.name => Station::volume(sfs, station.below, read_sfs),
        name if name == page.name && has_victims => Station::layer::<WithPython<PageSettings>>(page),
        name if name == dftl.name && has_victims => Station::layer::<WithPython<DftlSettings>>(dftl),
        _ => station.clone(),
    });
    let stations = Vec::leak(stations.collect());
    Box::leak(Box::new(Tables { stations, sfs, policies, page, dftl, victims, python }))
}

fn read_sfs(term: &Term) -> Result<Arc<dyn VolumeSettings>, ExpressionError> {
    let tables = tables();
    Ok(Arc::new(SfsSettings::read_with(term, tables.sfs, tables.policies)?))
}

fn named(settings: &Settings, option: &str) -> Arc<PythonPolicy> {
    let is_it = |policy: &&Arc<PythonPolicy>| policy.option == option && policy.word == settings.text(option);
    Arc::clone(tables().python.iter().find(is_it).expect("the word is of this table"))
}

fn read_grouping(settings: &Settings) -> Result<Arc<dyn GroupingSettings>, ExpressionError> {
    Ok(Arc::new(PythonGroupingSettings(named(settings, GROUPING))))
}

fn read_cleaner(settings: &Settings) -> Result<Arc<dyn Cleaner>, ExpressionError> {
    let policy = named(settings, CLEANER);
    Ok(Arc::new(PythonCleaner { made: Mutex::default(), policy }))
}

fn read_victim(settings: &Settings) -> Result<VictimPolicy, ExpressionError> {
    Ok(VictimPolicy::Chosen(Arc::new(PythonVictimSettings(named(settings, VICTIM)))))
}

/// The options of a layer whose victim policies are rows of a table.
trait ReadVictims: FlashLayer {
    /// Reads them, with the victim policies of these tables.
    fn read_from(term: &Term, geometry: &Geometry, tables: &Tables) -> Result<Self, ExpressionError>;
}

impl ReadVictims for PageSettings {
    fn read_from(term: &Term, geometry: &Geometry, tables: &Tables) -> Result<PageSettings, ExpressionError> {
        PageSettings::read_with(term, geometry, tables.page, tables.victims)
    }
}

impl ReadVictims for DftlSettings {
    fn read_from(term: &Term, geometry: &Geometry, tables: &Tables) -> Result<DftlSettings, ExpressionError> {
        DftlSettings::read_with(term, geometry, tables.dftl, tables.victims)
    }
}

/// The options of a layer, whose victim policies may be in Python.
#[derive(Debug)]
struct WithPython<S>(S);

impl<S: ReadVictims> FlashLayer for WithPython<S> {
    type On<T: Timing + Send + 'static> = S::On<T>;

    fn read(term: &Term, geometry: &Geometry) -> Result<WithPython<S>, ExpressionError> {
        Ok(WithPython(S::read_from(term, geometry, tables())?))
    }

    fn written_out(&self) -> &str {
        self.0.written_out()
    }

    fn exported_pages(&self) -> u64 {
        self.0.exported_pages()
    }

    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, seed: u64) -> Self::On<T> {
        self.0.on(flash, seed)
    }
}

/// Adds a policy, or replaces the one of its name.
fn add(option: &'static str, name: &str, about: &str, groups: usize, make: Py<PyAny>) -> PyResult<()> {
    let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !is_word || name.len() > 64 {
        let help = "take at most 64 letters, digits, - and _";
        return Err(fault::input(format!("'{name}' cannot be written in a path"), Some(help.to_string())));
    }
    let own = match option {
        GROUPING => words_of(POLICIES.groupings),
        CLEANER => words_of(POLICIES.cleaners),
        _ => words_of(page_level::VICTIMS),
    };
    if own.iter().any(|(word, _)| *word == name) {
        let help = Some("take another name".to_string());
        return Err(fault::input(format!("flashpath has a {option} {name} of its own"), help));
    }
    let _reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = tables().python.clone();
    all.retain(|policy| policy.option != option || policy.word != name);
    all.push(Arc::new(PythonPolicy {
        word: String::leak(name.to_string()),
        about: String::leak(about.to_string()),
        option,
        groups,
        make,
        calls: AtomicU64::new(0),
        items: AtomicU64::new(0),
        nanoseconds: AtomicU64::new(0),
    }));
    let tables = tables_of(all);
    *TABLES.write().unwrap_or_else(PoisonError::into_inner) = tables;
    Ok(())
}

/// Adds a grouping of `sfs`. `make(seed)` returns the function for a volume; it gets the columns of blocks as bytes, and
/// returns the groups as bytes.
#[pyfunction]
pub fn add_grouping(py: Python<'_>, name: &str, about: &str, groups: usize, make: Py<PyAny>) -> PyResult<()> {
    if !(1..=MOST_GROUPS).contains(&groups) {
        return Err(fault::input(format!("{groups} groups"), Some(format!("take 1 to {MOST_GROUPS}"))));
    }
    py.detach(|| add(GROUPING, name, about, groups, make))
}

/// Adds a cleaner of `sfs`. `make(seed)` returns its function; it gets the columns of segments as bytes, and returns the
/// scores as bytes.
#[pyfunction]
pub fn add_cleaner(py: Python<'_>, name: &str, about: &str, make: Py<PyAny>) -> PyResult<()> {
    py.detach(|| add(CLEANER, name, about, 0, make))
}

/// Adds a victim policy of `page` and `dftl`. `make(seed)` returns the function for a drive; it gets the columns of the
/// candidates as bytes, and returns the scores as bytes.
#[pyfunction]
pub fn add_victim(py: Python<'_>, name: &str, about: &str, make: Py<PyAny>) -> PyResult<()> {
    py.detach(|| add(VICTIM, name, about, 0, make))
}

/// The policies in Python: the option and the word of each.
#[pyfunction]
pub fn policies() -> Vec<(&'static str, &'static str)> {
    tables().python.iter().map(|policy| (policy.option, policy.word)).collect()
}

/// The cost of a policy in Python: its name, the calls, the blocks or segments, and the seconds.
pub type PolicyCost = (String, u64, u64, f64);

/// The costs of all policies since they were added.
#[pyfunction]
pub fn policy_costs() -> Vec<PolicyCost> {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let cost = |policy: &Arc<PythonPolicy>| {
        let name = format!("{}={}", policy.option, policy.word);
        (name, of(&policy.calls), of(&policy.items), of(&policy.nanoseconds) as f64 / 1e9)
    };
    tables().python.iter().map(cost).collect()
}

/// A run of this thread.
#[derive(Default)]
struct ThisRun {
    costs: Vec<PolicyCost>,
    failure: Option<PyErr>,
}

thread_local! {
    static THIS_RUN: RefCell<ThisRun> = RefCell::default();
    /// An address on the stack of this thread; 0 if none is known.
    static OWN_STACK: Cell<usize> = const { Cell::new(0) };
}

/// The most bytes of its stack that a thread uses between [`note_stack`] and a policy.
const NEAR: usize = 1 << 20;

/// Begins to count the costs of a run on this thread.
pub fn begin() {
    THIS_RUN.take();
    note_stack();
}

/// Notes the stack of this thread. It is called outside of coroutines.
fn note_stack() {
    OWN_STACK.set(stack_address());
}

#[inline(never)]
fn stack_address() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

/// Calls Python on a stack of a thread. Simulated threads are coroutines with stacks of their own, which the interpreter
/// takes for an overflow of its own: it compares addresses with the bounds of the thread's stack.
fn on_stack_of_a_thread<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    if OWN_STACK.get().abs_diff(stack_address()) < NEAR {
        return call();
    }
    std::thread::scope(|scope| scope.spawn(call).join().unwrap_or_else(|payload| resume_unwind(payload)))
}

/// The costs of the run on this thread, and the exception of a policy that failed.
pub fn ended() -> (Vec<PolicyCost>, Option<PyErr>) {
    let ThisRun { costs, failure } = THIS_RUN.take();
    (costs, failure)
}

/// Ends the run, whose results would not be those of the policy.
fn abandon(policy: &PythonPolicy, error: PyErr) -> ! {
    let why = format!("{}={} failed: {error}", policy.option, policy.word);
    THIS_RUN.with_borrow_mut(|run| {
        run.failure.get_or_insert(error);
    });
    resume_unwind(Box::new(Abandoned(why)))
}

impl PythonPolicy {
    /// Makes the function of a volume.
    fn start(&self, seed: u64) -> Py<PyAny> {
        on_stack_of_a_thread(|| Python::attach(|py| self.make.call1(py, (seed,))))
            .unwrap_or_else(|error| abandon(self, error))
    }

    /// Calls the function with these columns. `read` reads its answer.
    fn call<T: Send>(
        &self,
        function: &Py<PyAny>,
        columns: &[Vec<u8>],
        items: usize,
        now: u64,
        read: impl FnOnce(&[u8]) -> Option<Vec<T>> + Send,
    ) -> Vec<T> {
        let began = Instant::now();
        let call = |py: Python<'_>| {
            let columns: Vec<Bound<'_, PyBytes>> = columns.iter().map(|column| PyBytes::new(py, column)).collect();
            let answer = function.bind(py).call1((columns, now))?;
            let wrong = || PyValueError::new_err(format!("a policy must answer {items} numbers, one for each item"));
            read(answer.cast::<PyBytes>()?.as_bytes()).filter(|answer| answer.len() == items).ok_or_else(wrong)
        };
        let called = on_stack_of_a_thread(|| Python::attach(call));
        let nanoseconds = began.elapsed().as_nanos() as u64;
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.items.fetch_add(items as u64, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        THIS_RUN.with_borrow_mut(|run| {
            let name = format!("{}={}", self.option, self.word);
            let at = run.costs.iter().position(|cost| cost.0 == name).unwrap_or_else(|| {
                run.costs.push((name, 0, 0, 0.0));
                run.costs.len() - 1
            });
            let cost = &mut run.costs[at];
            *cost = (std::mem::take(&mut cost.0), cost.1 + 1, cost.2 + items as u64, cost.3 + nanoseconds as f64 / 1e9);
        });
        called.unwrap_or_else(|error| abandon(self, error))
    }
}

impl std::fmt::Debug for PythonPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.option, self.word)
    }
}

/// A column of items.
fn column<I, const N: usize>(items: &[I], of: impl Fn(&I) -> [u8; N]) -> Vec<u8> {
    items.iter().flat_map(of).collect()
}

/// A group, or -1.
fn group(group: Option<u8>) -> [u8; 1] {
    group.map_or([0xff], |group| [group])
}

/// The columns of blocks: `Q` writes, modified, file's writes, file's modified; `b` group, group of the cleaned segment.
fn block_columns(blocks: &[BlockView]) -> Vec<Vec<u8>> {
    vec![
        column(blocks, |block| block.block.writes.to_ne_bytes()),
        column(blocks, |block| block.block.modified.0.to_ne_bytes()),
        column(blocks, |block| block.file.writes.to_ne_bytes()),
        column(blocks, |block| block.file.modified.0.to_ne_bytes()),
        column(blocks, |block| group(block.group)),
        column(blocks, |block| group(block.cleaned_from)),
    ]
}

/// The columns of segments: `I` number, capacity, live; `Q` writes; `d` mean modification time; `Q` youngest, written; `b`
/// group.
fn segment_columns(segments: &[SegmentView]) -> Vec<Vec<u8>> {
    let mean = |segment: &SegmentView| segment.modified as f64 / f64::from(segment.live.max(1));
    vec![
        column(segments, |segment| segment.number.to_ne_bytes()),
        column(segments, |segment| segment.capacity.to_ne_bytes()),
        column(segments, |segment| segment.live.to_ne_bytes()),
        column(segments, |segment| segment.writes.to_ne_bytes()),
        column(segments, |segment| mean(segment).to_ne_bytes()),
        column(segments, |segment| segment.youngest.0.to_ne_bytes()),
        column(segments, |segment| segment.written.0.to_ne_bytes()),
        column(segments, |segment| group(segment.group)),
    ]
}

/// The columns of erase blocks: `I` block, valid, invalid, erases; `Q` touched.
fn candidate_columns(candidates: &[Candidate]) -> Vec<Vec<u8>> {
    vec![
        column(candidates, |candidate| candidate.block.0.to_ne_bytes()),
        column(candidates, |candidate| candidate.valid.to_ne_bytes()),
        column(candidates, |candidate| candidate.invalid.to_ne_bytes()),
        column(candidates, |candidate| candidate.erases.to_ne_bytes()),
        column(candidates, |candidate| candidate.touched.to_ne_bytes()),
    ]
}

#[derive(Debug)]
struct PythonGroupingSettings(Arc<PythonPolicy>);

impl GroupingSettings for PythonGroupingSettings {
    fn start(&self, volume: VolumeShape) -> Box<dyn Grouping> {
        // A volume is made before its threads begin.
        note_stack();
        Box::new(PythonGrouping { function: self.0.start(volume.seed), policy: Arc::clone(&self.0) })
    }
}

struct PythonGrouping {
    policy: Arc<PythonPolicy>,
    function: Py<PyAny>,
}

impl Grouping for PythonGrouping {
    fn groups(&self) -> usize {
        self.policy.groups
    }

    fn group_of(&mut self, block: &BlockView, now: Tick) -> usize {
        self.groups_of(&[*block], now)[0]
    }

    fn groups_of(&mut self, blocks: &[BlockView], now: Tick) -> Vec<usize> {
        let most = self.policy.groups;
        let read = |answer: &[u8]| {
            let groups: Vec<usize> = answer.iter().map(|group| usize::from(*group)).collect();
            groups.iter().all(|group| *group < most).then_some(groups)
        };
        self.policy.call(&self.function, &block_columns(blocks), blocks.len(), now.0, read)
    }
}

#[derive(Debug)]
struct PythonCleaner {
    policy: Arc<PythonPolicy>,
    /// The function, made at its first use: a cleaner has no seed.
    made: Mutex<Option<Py<PyAny>>>,
}

impl Cleaner for PythonCleaner {
    fn score(&self, segment: &SegmentView, lives: &Lives, now: Tick) -> f64 {
        self.scores(&[*segment], lives, now)[0]
    }

    fn scores(&self, segments: &[SegmentView], _lives: &Lives, now: Tick) -> Vec<f64> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let function = &*made.get_or_insert_with(|| self.policy.start(0));
        self.policy.call(function, &segment_columns(segments), segments.len(), now.0, scores)
    }
}

/// The scores in an answer.
fn scores(answer: &[u8]) -> Option<Vec<f64>> {
    let (scores, rest) = answer.as_chunks::<8>();
    rest.is_empty().then(|| scores.iter().map(|score| f64::from_ne_bytes(*score)).collect())
}

#[derive(Debug)]
struct PythonVictimSettings(Arc<PythonPolicy>);

impl VictimSettings for PythonVictimSettings {
    fn start(&self, seed: u64) -> Box<dyn VictimChooser> {
        // A drive is made before its threads begin.
        note_stack();
        Box::new(PythonVictim { function: self.0.start(seed), policy: Arc::clone(&self.0) })
    }
}

struct PythonVictim {
    policy: Arc<PythonPolicy>,
    function: Py<PyAny>,
}

impl VictimChooser for PythonVictim {
    fn choose(&mut self, candidates: &[Candidate], now: u64) -> usize {
        let scores = self.policy.call(&self.function, &candidate_columns(candidates), candidates.len(), now, scores);
        // Of several with the highest score it is the one with the lowest number, in any order of the candidates.
        let order = |at: &usize, other: &usize| {
            scores[*at].total_cmp(&scores[*other]).then_with(|| candidates[*other].block.cmp(&candidates[*at].block))
        };
        (0..candidates.len()).max_by(order).expect("there is a candidate")
    }
}
