//! Small programs whose overlap is computed by hand, and random ones against what must hold of all.

use super::*;
use crate::task::{Gate, SharedGate, Step};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

fn works<'a>(works: impl IntoIterator<Item = impl FnOnce(&Task<'_>) + 'a>) -> Vec<Work<'a>> {
    works.into_iter().map(|work| Box::new(work) as Work<'a>).collect()
}

/// Takes no CPU time.
const FREE: Costs = Costs::none();

/// Threads that take no CPU time, from zero on.
fn run_free<'a>(works: Vec<Work<'a>>) -> Result<Time, ThreadsFault> {
    run_threads(Time::ZERO, &FREE, works)
}

/// Something that does one thing at a time, each `takes_ns`, as a plane of flash does.
struct Plane {
    takes_ns: u64,
    free_from: Cell<Time>,
    /// The times of its requests, in the order of calls.
    asked: RefCell<Vec<Time>>,
}

impl Plane {
    fn new(takes_ns: u64) -> Plane {
        Plane { takes_ns, free_from: Cell::new(Time::ZERO), asked: RefCell::default() }
    }

    fn ask(&self, at: Time) -> Result<Time, ()> {
        self.asked.borrow_mut().push(at);
        self.free_from.set(self.free_from.get().max(at) + self.takes_ns);
        Ok(self.free_from.get())
    }
}

/// The drawing of docs/threads.md: A and B meet at the log, and write to planes of their own; C reads from a third, and no
/// gate is in its way.
#[test]
fn three_threads_overlap_exactly_as_their_waits_allow() {
    let (log, planes) = (Gate::new("log", 0), [Plane::new(285), Plane::new(300), Plane::new(180)]);
    let (inside, done) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let write = |name, comes_at, plane: usize| {
        let (log, planes, inside, done) = (&log, &planes, &inside, &done);
        move |task: &Task<'_>| {
            task.wait_until(Time(comes_at));
            let mut tail = log.enter(task);
            let from = task.now();
            *tail += 1;
            task.wait_until(from + 5);
            drop(tail);
            inside.borrow_mut().push((name, from, task.now()));
            task.ask(|at| planes[plane].ask(at)).unwrap();
            done.borrow_mut().push((name, task.now()));
        }
    };
    let read = |task: &Task<'_>| {
        task.wait_until(Time(10));
        task.ask(|at| planes[2].ask(at)).unwrap();
        done.borrow_mut().push(('C', task.now()));
    };
    let threads: Vec<Work<'_>> = vec![Box::new(write('A', 20, 0)), Box::new(write('B', 22, 1)), Box::new(read)];
    assert_eq!(run_free(threads).unwrap(), Time(330), "the run ends when the last thread does");
    assert_eq!(*inside.borrow(), [('A', Time(20), Time(25)), ('B', Time(25), Time(30))]);
    assert_eq!(*done.borrow(), [('C', Time(190)), ('A', Time(310)), ('B', Time(330))]);
}

#[test]
fn the_thread_furthest_behind_goes_next_and_of_two_the_lower_number() {
    let order = RefCell::new(Vec::new());
    let step = |number: u64| {
        let order = &order;
        move |task: &Task<'_>| {
            for _ in 0..3 {
                order.borrow_mut().push((task.now().0, number));
                task.wait_until(task.now() + 10 * (number + 1));
            }
        }
    };
    run_free(works((0..3).map(step))).unwrap();
    let mut sorted = order.borrow().clone();
    sorted.sort();
    assert_eq!(*order.borrow(), sorted);
    assert_eq!(order.borrow()[..5], [(0, 0), (0, 1), (0, 2), (10, 0), (20, 0)]);
}

/// A task that came to a gate while nobody was ready to go in took it before those who had waited for it for long: who was
/// let go on by the one who left was ready, but had not run yet.
#[test]
fn tasks_pass_a_gate_in_the_order_of_their_arrival() {
    let costs = FREE.with(Step::Call, 1);
    let (gate, order) = (Gate::new("log", ()), RefCell::new(Vec::new()));
    let comes = |name, comes_at, spends| {
        let (gate, order) = (&gate, &order);
        Box::new(move |task: &Task<'_>| {
            task.wait_until(Time(comes_at));
            let _inside = gate.enter(task);
            order.borrow_mut().push((name, task.now()));
            // It does not give way here: E is behind it when it leaves.
            task.spend(Step::Call, spends);
        }) as Work<'_>
    };
    run_threads(Time::ZERO, &costs, vec![comes('E', 91, 1), comes('A', 10, 90), comes('B', 22, 1)]).unwrap();
    assert_eq!(*order.borrow(), [('A', Time(10)), ('B', Time(100)), ('E', Time(101))]);
}

/// A is inside from 10 to 100. B comes at 22 and E at 91: E waits for both.
#[test]
fn waits_at_gates_are_counted_by_the_name_of_the_gate() {
    let costs = FREE.with(Step::Call, 1);
    let (gate, other) = (Gate::new("log", ()), SharedGate::new("inode", ()));
    let comes = |comes_at, spends| {
        let (gate, other) = (&gate, &other);
        Box::new(move |task: &Task<'_>| {
            task.wait_until(Time(comes_at));
            drop(other.read(task));
            let _inside = gate.enter(task);
            task.spend(Step::Call, spends);
        }) as Work<'_>
    };
    let threads = vec![comes(91, 1), comes(10, 90), comes(22, 1)];
    let (end, waits) = run_threads_told(Time::ZERO, &costs, threads, &|_| {}).unwrap();
    assert_eq!(end, Time(102));
    let waits: Vec<(&str, u64, u64)> = waits.iter().map(|(gate, waits)| (gate, waits.count, waits.ns)).collect();
    assert_eq!(waits, [("log", 2, (100 - 22) + (101 - 91))], "nobody waited to read");
}

#[test]
fn readers_go_in_together_and_none_overtakes_a_writer_that_waits() {
    let (gate, order) = (SharedGate::new("inode", ()), RefCell::new(Vec::new()));
    let read = |name, comes_at| {
        let (gate, order) = (&gate, &order);
        Box::new(move |task: &Task<'_>| {
            task.wait_until(Time(comes_at));
            let inside = gate.read(task);
            order.borrow_mut().push((name, task.now()));
            task.wait_until(task.now() + 100);
            drop(inside);
        }) as Work<'_>
    };
    let write = |task: &Task<'_>| {
        task.wait_until(Time(30));
        let _inside = gate.write(task);
        order.borrow_mut().push(('w', task.now()));
        task.wait_until(task.now() + 50);
    };
    run_free(vec![Box::new(write), read('a', 10), read('b', 20), read('c', 40), read('d', 41)]).unwrap();
    // The second reader left at 120, the writer at 170.
    let found = order.borrow().clone();
    assert_eq!(found, [('a', Time(10)), ('b', Time(20)), ('w', Time(120)), ('c', Time(170)), ('d', Time(170))]);
}

/// A wait did not give way, and a thread at an earlier time saw the work that followed it.
#[test]
fn a_change_after_a_wait_is_not_seen_at_an_earlier_time() {
    let cache = Cell::new(false);
    let fills = |task: &Task<'_>| {
        task.ask(|at| Ok::<_, ()>(at + 100)).unwrap();
        cache.set(true);
    };
    let looks = |task: &Task<'_>| {
        task.wait_until(Time(50));
        assert!(!cache.get(), "it is filled at 100");
        task.wait_until(Time(101));
        assert!(cache.get());
    };
    run_free(vec![Box::new(fills), Box::new(looks)]).unwrap();
}

#[test]
fn a_device_is_asked_in_the_order_of_time() {
    let plane = Plane::new(7);
    let costs = FREE.with(Step::Call, 13);
    let asks = |number: u64| {
        let plane = &plane;
        move |task: &Task<'_>| {
            for round in 0..50 {
                task.spend(Step::Call, 1 + (round * (number + 3)) % 11);
                task.ask(|at| plane.ask(at)).unwrap();
            }
        }
    };
    run_threads(Time::ZERO, &costs, works((0..8).map(asks))).unwrap();
    assert!(plane.asked.borrow().is_sorted(), "{:?}", plane.asked);
    assert_eq!(plane.asked.borrow().len(), 400);
}

/// Counts what is dropped.
struct Dropped<'a>(&'a Cell<u32>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn threads_that_wait_for_each_other_are_an_error_that_names_gates_and_holders() {
    let (map, log, dropped) = (Gate::new("map", ()), SharedGate::new("log", ()), Cell::new(0));
    let one = |task: &Task<'_>| {
        let _dropped = Dropped(&dropped);
        let _map = map.enter(task);
        task.wait_until(Time(10));
        let _log = log.read(task);
    };
    let other = |task: &Task<'_>| {
        let _dropped = Dropped(&dropped);
        let _log = log.write(task);
        task.wait_until(Time(10));
        let _map = map.enter(task);
    };
    let ends = |task: &Task<'_>| task.wait_until(Time(1000));
    let error = run_free(vec![Box::new(ends), Box::new(one), Box::new(other)]).unwrap_err().to_string();
    assert!(error.contains("thread 2 waits at the gate log, held by thread 3"), "{error}");
    assert!(error.contains("thread 3 waits at the gate map, held by thread 2"), "{error}");
    assert_eq!(dropped.get(), 2, "both were unwound");
}

#[test]
fn a_thread_that_enters_a_gate_twice_waits_for_itself_and_is_told() {
    let gate = Gate::new("map", ());
    let twice = |task: &Task<'_>| {
        let _first = gate.enter(task);
        let _second = gate.enter(task);
    };
    let error = run_free(vec![Box::new(twice)]).unwrap_err().to_string();
    assert!(error.contains("thread 1 waits at the gate map, held by thread 1"), "{error}");
}

#[test]
fn a_panic_of_one_thread_ends_the_run_with_what_it_said_and_unwinds_the_others() {
    let (gate, dropped) = (Gate::new("log", ()), Cell::new(0));
    let waits = |task: &Task<'_>| {
        let _dropped = Dropped(&dropped);
        let _inside = gate.enter(task);
        task.wait_until(Time(1 << 40));
        unreachable!("the run has ended");
    };
    let panics = |task: &Task<'_>| {
        let _dropped = Dropped(&dropped);
        task.wait_until(Time(5));
        panic!("block {} is nobody's", 7);
    };
    let error = run_free(vec![Box::new(waits), Box::new(waits), Box::new(panics)]).unwrap_err();
    let ThreadsFault::Panicked { number: 3, said } = error else { panic!("{error}") };
    assert_eq!(said, "block 7 is nobody's");
    assert_eq!(dropped.get(), 3, "those that had begun were unwound");
    assert!(!std::thread::panicking());
    // What a thread left half done inside is not used.
    let late = |task: &Task<'_>| drop(gate.enter(task));
    let error = run_free(vec![Box::new(late)]).unwrap_err().to_string();
    assert!(error.contains("the gate log: a task has panicked inside"), "{error}");
}

#[test]
fn one_thread_takes_what_it_would_without_threads() {
    let (gate, costs) = (Gate::new("log", ()), FREE.with(Step::BlockCopied, 300));
    let work = |task: &Task<'_>| {
        for _ in 0..10 {
            let _inside = gate.enter(task);
            task.spend(Step::BlockCopied, 2);
            task.ask(|at| Ok::<_, ()>(at + 50)).unwrap();
        }
    };
    assert_eq!(run_threads(Time(7), &costs, vec![Box::new(work)]).unwrap(), Time(7 + 10 * 650));
    assert_eq!(run_free(Vec::new()).unwrap(), Time::ZERO, "and none takes no time");
}

/// Threads that think for a time of their own and are then served, by one of `servers` each for the same time: the first
/// free one takes who has waited longest.
fn served(servers: usize, thinks_ns: &[u64], rounds: u64, service_ns: u64) -> Time {
    let line = Gate::new("line", vec![Time::ZERO; servers]);
    let client = |thinks: &u64| {
        let (line, thinks) = (&line, *thinks);
        move |task: &Task<'_>| {
            for _ in 0..rounds {
                task.wait_until(task.now() + thinks);
                let mut free_from = line.enter(task);
                let first = free_from.iter_mut().min().expect("there are servers");
                *first = task.now().max(*first) + service_ns;
                let done = *first;
                drop(free_from);
                task.wait_until(done);
            }
        }
    };
    run_free(works(thinks_ns.iter().map(client))).unwrap()
}

/// A closed line with N servers and M clients that do not think: each round serves M clients in M / N services. With fewer
/// clients than servers nobody waits.
#[test]
fn a_line_with_n_servers_takes_what_the_closed_form_says() {
    for (servers, clients) in [(1, 1), (1, 16), (4, 16), (16, 16), (8, 4)] {
        let took = served(servers, &vec![0; clients], 100, 250);
        let services = 100 * (clients as u64).div_ceil(servers as u64);
        assert_eq!(took, Time(services * 250), "{servers} servers, {clients} clients");
    }
    // Deterministic, with thinking: the bound of asymptotic analysis is met, as nothing varies. X = min(M / (Z + S), N / S).
    for (servers, clients) in [(2usize, 3usize), (2, 20), (5, 9)] {
        let (think, service, rounds) = (1000u64, 400u64, 2000u64);
        let took = served(servers, &vec![think; clients], rounds, service).0 as f64;
        let rate = (clients as u64 * rounds) as f64 / took;
        let bound = (clients as f64 / (think + service) as f64).min(servers as f64 / service as f64);
        assert!((rate / bound - 1.0).abs() < 0.01, "{servers} servers, {clients} clients: {rate} of {bound}");
    }
}

/// A step of a thread of a random program.
#[derive(Clone, Copy, Debug)]
enum Do {
    Spend(u64),
    Wait(u64),
    Alone { gate: usize, for_ns: u64, waits: bool },
    Shared { gate: usize, for_ns: u64 },
}

fn action() -> impl Strategy<Value = Do> {
    prop_oneof![
        (1u64..60).prop_map(Do::Spend),
        (1u64..60).prop_map(Do::Wait),
        (0usize..3, 0u64..40, any::<bool>()).prop_map(|(gate, for_ns, waits)| Do::Alone { gate, for_ns, waits }),
        (0usize..3, 0u64..40).prop_map(|(gate, for_ns)| Do::Shared { gate, for_ns }),
    ]
}

/// A stay inside of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stay {
    gate: usize,
    thread: usize,
    is_alone: bool,
    came: Time,
    from: Time,
    until: Time,
}

/// The stays of a program, in the order in which they began, and the end.
fn stays(program: &[Vec<Do>]) -> (Vec<Stay>, Time) {
    let gates: [SharedGate<Cell<u32>>; 3] = std::array::from_fn(|_| SharedGate::new("one of three", Cell::new(0)));
    let (stays, costs) = (RefCell::new(Vec::new()), FREE.with(Step::Call, 1));
    let thread = |(thread, actions): (usize, &Vec<Do>)| {
        let (actions, stays, gates) = (actions.clone(), &stays, &gates);
        let work = move |task: &Task<'_>| {
            for action in actions {
                task.give_way();
                let came = task.now();
                let stayed = |gate, is_alone, from, place: usize| {
                    stays.borrow_mut()[place] = Stay { gate, thread, is_alone, came, from, until: task.now() };
                };
                let begins = || {
                    stays.borrow_mut().push(Stay { gate: 0, thread, is_alone: false, came, from: came, until: came });
                    (stays.borrow().len() - 1, task.now())
                };
                match action {
                    Do::Spend(ns) => task.spend(Step::Call, ns),
                    Do::Wait(ns) => task.wait_until(task.now() + ns),
                    Do::Alone { gate, for_ns, waits } => {
                        let inside = gates[gate].write(task);
                        let (place, from) = begins();
                        assert_eq!(inside.replace(1 << 16), 0, "nobody else is inside");
                        match waits {
                            true => task.wait_until(from + for_ns),
                            false => task.spend(Step::Call, for_ns),
                        }
                        assert_eq!(inside.replace(0), 1 << 16, "nobody came in meanwhile");
                        stayed(gate, true, from, place);
                    }
                    Do::Shared { gate, for_ns } => {
                        let inside = gates[gate].read(task);
                        let (place, from) = begins();
                        inside.set(inside.get() + 1);
                        task.wait_until(from + for_ns);
                        inside.set(inside.get() - 1);
                        assert!(inside.get() < 1 << 16, "no writer is inside");
                        stayed(gate, false, from, place);
                    }
                }
            }
        };
        Box::new(work) as Work<'_>
    };
    let end = run_threads(Time::ZERO, &costs, program.iter().enumerate().map(thread).collect()).unwrap();
    (stays.into_inner(), end)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_exclude_each_other_in_the_order_of_time(
        program in prop::collection::vec(prop::collection::vec(action(), 0..20), 1..9)
    ) {
        let (found, end) = stays(&program);
        prop_assert_eq!((&found, end), (&stays(&program).0, end), "the same program comes out the same");
        for (place, stay) in found.iter().enumerate() {
            prop_assert!(stay.came <= stay.from && stay.from <= stay.until && stay.until <= end);
            for later in found[place + 1..].iter().filter(|later| later.gate == stay.gate) {
                if stay.is_alone || later.is_alone {
                    prop_assert!(stay.until <= later.from, "{stay:?} and {later:?} overlap");
                }
                // Of readers who go in at one instant any may be told first.
                let are_together = !stay.is_alone && !later.is_alone && stay.from == later.from;
                prop_assert!(stay.came <= later.came || are_together, "{later:?} was overtaken by {stay:?}");
                prop_assert!(stay.from <= later.from, "{stay:?} went in before {later:?}");
            }
        }
        // Nobody waits for nothing: who waited goes in when the last one whom it waited for has left.
        for stay in found.iter().filter(|stay| stay.from > stay.came) {
            let left = found.iter().filter(|other| other.gate == stay.gate && **other != *stay);
            let left: Vec<Time> = left.map(|other| other.until).collect();
            prop_assert!(left.contains(&stay.from), "{stay:?} waited for nobody");
        }
    }
}
