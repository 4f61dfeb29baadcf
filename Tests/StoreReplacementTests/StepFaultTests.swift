// Each call of single steps fails in its turn, on the simulated disk: steps that the samples of the whole migration
// path may miss.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SimulatedDisk
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("Failures within single steps")
struct StepFaultTests {
  /// Fails calls of a migration from a moment on that `arm` knows, one in so many of them and some others, and judges
  /// what is left.
  private func fail(
    _ scenario: DiskScenario, oneIn every: UInt64, and others: Set<Int> = [], isSticky: Bool = false,
    arm: (DiskWorld, @escaping () -> Void, @escaping () -> Void) -> Void
  ) throws -> [HopdError.Code?] {
    let start = try DiskWorld(scenario)
    var codes: [HopdError.Code?] = []
    var number: UInt64 = 0
    for call in 1...2000 {
      guard Simulation.takes(oneIn: every, &number) || others.contains(call) else { continue }
      let world = try start.with(start.disk.copy())
      let disk = world.disk
      var isMet = false
      func heal() {
        isMet = disk.calls >= call
        disk.heal()
      }
      arm(world, { disk.fail(at: call, isSticky: isSticky) }, heal)
      var failure: (any Error)?
      try disk.mounted { do { try world.migrate() } catch { failure = error } }
      isMet = isMet || disk.calls >= call
      let place = "\(scenario), call \(call): \(disk.lastFault)"
      disk.heal()
      (world.beforeSwap, world.observer, world.inPlaceObserver) = ({}, { _ in }, { _ in })
      world.hasFailed = true
      #expect(failure == nil || failure is HopdError || failure is StepErrorTests.Foreign, "\(place)")
      codes.append((failure as? HopdError)?.code)
      if let complaint = world.complaint(Judgement(isReported: failure == nil)) {
        Issue.record("\(place): \(complaint)")
      }
      if !isMet { return codes }
    }
    throw Finding("the calls have no end")
  }

  @Test("On the way back from an error, the write-ahead mode too")
  func rollback() throws {
    let codes = try fail(DiskScenario(kind: .hotLog), oneIn: 6) { world, fail, _ in
      world.observer = {
        guard $0 == .compared else { return }
        fail()
        throw StepErrorTests.Foreign()
      }
    }
    #expect(codes.count > 2 && codes.last == .some(nil), "the last is the foreign error alone")
  }

  @Test(
    "In place: a disk that fails from the commit on leaves a store in doubt, that the next start knows",
    arguments: [false, true])
  func inPlace(_ isSticky: Bool) throws {
    let codes = try fail(
      DiskScenario(kind: .rollback, mode: .inPlace), oneIn: isSticky ? 12 : 9, and: [22], isSticky: isSticky,
      arm: { world, fail, heal in
        world.inPlaceObserver = {
          if $0 == .compared { fail() }
          if $0 == .durable { heal() }
        }
      })
    #expect(codes.count > 2)
    // From the twenty-second on: some pages are written, and SQLite cannot take them back.
    if isSticky { #expect(codes.contains(.replacementUnconfirmed)) }
  }

  @Test(
    "Sealing and folding: what says that it was done was done",
    arguments: Simulation.isWhole ? SourceKind.allCases : [.hotLog])
  func sealAndFold(_ kind: SourceKind) throws {
    let start = try DiskWorld(DiskScenario(kind: kind))
    let staged = try start.disk.mounted {
      let store = try LockedStore(location: start.location, lockDirectory: start.locks.path, files: start.disk)
      defer { store.release() }
      return try start.stage(store, StagingArea(location: store.location, job: "ab12", files: start.disk))
    }
    start.disk.settle()
    for call in 1...2000 {
      let world = try start.with(start.disk.copy())
      let disk = world.disk
      var isMet = false
      try disk.mounted {
        let store = try LockedStore(location: world.location, lockDirectory: world.locks.path, files: disk)
        defer { store.release() }
        let swap = try world.swap()
        var undo = StoreSwap.Undo()
        disk.fail(at: call)
        var failure: (any Error)?
        do {
          undo.staged = try swap.seal(staged, like: store, journalMode: .wal)
          try swap.foldLog(of: store, &undo)
        } catch { failure = error }
        isMet = disk.calls >= call
        let place = "\(kind), call \(call): \(disk.lastFault)"
        disk.heal()
        if let failure {
          #expect(failure is HopdError, "\(place): \(failure)")
          return
        }
        let header = try disk.read(staged, limit: 1 << 24)
        #expect(header[18] == 2 && header[19] == 2, "\(place)")
        #expect(try disk.status(world.location.writeAheadLog) == nil, "\(place)")
      }
      let version = try disk.mounted { try world.version() }
      #expect(version == "one", "\(kind), call \(call)")
      if !isMet {
        #expect(call > 10)
        return
      }
    }
  }

  @Test("The change of the journal mode of a held store", arguments: [SourceKind.rollback, .hotLog])
  func journalMode(_ kind: SourceKind) throws {
    let start = try DiskWorld(DiskScenario(kind: kind))
    let wanted: JournalMode = kind == .rollback ? .wal : .delete
    for call in 1...2000 {
      let world = try start.with(start.disk.copy())
      let disk = world.disk
      let place = { "\(kind), call \(call): \(disk.lastFault)" }
      var isMet = false
      try disk.mounted {
        let store = try LockedStore(location: world.location, lockDirectory: world.locks.path, files: disk)
        defer { store.release() }
        try store.connection.execute("PRAGMA shrink_memory")
        disk.fail(at: call)
        var failure: (any Error)?
        do {
          try store.foldLogIn()
          try store.setJournalMode(wanted)
        } catch { failure = error }
        isMet = disk.calls >= call
        disk.heal()
        if failure == nil {
          #expect(try store.connection.text("PRAGMA journal_mode") == wanted.rawValue, "\(place())")
        } else {
          #expect(failure is HopdError, "\(place()): \(failure.map { "\($0)" } ?? "")")
        }
      }
      let version = try disk.mounted { try world.version() }
      #expect(version == "one", "\(place())")
      if !isMet {
        #expect(call > 5)
        return
      }
    }
  }

  @Test("Each call of a restore where no store is")
  func restore() throws {
    let start = try DiskWorld(DiskScenario(kind: .hotLog, hasExternalData: true))
    let backup = try start.disk.mounted {
      let backup = try start.migrate().backup
      try start.disk.unlink(start.location.database)
      return try #require(backup)
    }
    start.disk.settle()
    var number: UInt64 = 0
    for call in 1...2000 where Simulation.takes(oneIn: 4, &number) {
      let world = try start.with(start.disk.copy())
      let disk = world.disk
      func restore(_ job: String) throws {
        _ = try Restore(swap: world.swap(), lockDirectory: world.locks.path).restore(
          backup, to: world.location, job: job, backup: world.rule, now: 1_900_000_100)
      }
      var isMet = false
      try disk.mounted {
        disk.fail(at: call)
        var failure: (any Error)?
        do { try restore("ee55") } catch { failure = error }
        isMet = disk.calls >= call
        let place = "call \(call): \(disk.lastFault)"
        disk.heal()
        #expect(failure == nil || failure is HopdError, "\(place)")
        if failure != nil, try disk.status(world.location.database) == nil {
          try restore("ff66")
        }
        #expect(try world.version() == "one", "\(place)")
        #expect(try disk.names(in: world.stores).filter { $0.string.contains(".hop-") }.isEmpty, "\(place)")
        try world.requireExternalData(of: world.location.store)
      }
      if !isMet {
        #expect(call > 20)
        return
      }
    }
  }
}
