// Compiles programs once for all stores on the same migration path. A program depends on the hop, on its source tables,
// and on a few facts about rows. The facts differ between stores, so each program is kept with its facts and used only
// for stores with the same ones. Programs that contain key offsets are never shared.

import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite
import Synchronization

/// Compiles through a memo that belongs to the hops; without a memo, every program is compiled again.
struct ProgramCache {
  let memo: Memo?

  typealias Asking = (SourceReference) throws(SQLiteError) -> Bool

  /// The inputs of a program apart from facts about rows.
  struct Key: Hashable, Sendable {
    /// The position of the hop in its chain.
    let hop: Int
    let source: SourceTables
    let options: EngineOptions
    let isFinal: Bool

    /// Returns nil for a hop that derives keys from those of this store.
    init?(
      hop: Hop, source: SourceTables, options: EngineOptions, layout: AssociationLayout?, isFinal: Bool
    ) {
      for lane in layout?.lanes ?? [] {
        if case .expanded = lane.kind { return nil }
        if lane.offset != 0 { return nil }
      }
      self.hop = hop.index
      self.source = source
      self.options = options
      self.isFinal = isFinal
    }
  }

  /// Returns the program of that key for a store whose references `isSound` checks. `make` compiles it, and must depend
  /// only on the key, the hops and the results of `isSound`.
  func program<Program: Sendable>(
    _ key: Key?, isSound: @escaping Asking = { _ in false }, _ make: (@escaping Asking) throws -> Program
  ) throws -> Program {
    guard let memo, let key else { return try make(isSound) }
    let variants = memo.fact(VariantsKey<Program>(key: key)) { ProgramVariants<Program>() }
    if let known = try variants.program(isSound) { return known }
    var answers: [AskedReference] = []
    let program = try make { reference throws(SQLiteError) in
      let answer = try isSound(reference)
      answers.append(AskedReference(reference: reference, isSound: answer))
      return answer
    }
    variants.keep(program, answers)
    return program
  }

  /// The program type distinguishes programs with equal keys.
  private struct VariantsKey<Program>: Hashable, Sendable {
    let key: Key
  }
}

/// A checked reference with its result.
struct AskedReference: Sendable {
  let reference: SourceReference
  let isSound: Bool
}

/// The programs of one key, which differ in the results of checks.
final class ProgramVariants<Program: Sendable>: Sendable {
  private struct Variant: Sendable {
    let answers: [AskedReference]
    let program: Program
  }

  /// Stores of one app have sound references in the same columns, usually in all.
  private static var most: Int { 3 }

  private let variants = Mutex<[Variant]>([])

  /// Returns the program whose checks have the same results in this store. Checks run in the order of compilation, so
  /// none runs that compiling would not need.
  func program(_ isSound: ProgramCache.Asking) throws(SQLiteError) -> Program? {
    // Checks may take long, so they run without the lock.
    let known = variants.withLock { $0 }
    search: for variant in known {
      for asked in variant.answers where try isSound(asked.reference) != asked.isSound { continue search }
      return variant.program
    }
    return nil
  }

  func keep(_ program: Program, _ answers: [AskedReference]) {
    variants.withLock { variants in
      if variants.count >= Self.most { variants.removeFirst() }
      variants.append(Variant(answers: answers, program: program))
    }
  }
}
