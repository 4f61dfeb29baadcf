// Programs are compiled once for all stores on the same migration path. A program depends on the hop, on where it
// reads, and on a few answers about rows. The answers differ between stores, so each program is kept with its answers
// and used only for stores that give the same ones. Programs that contain key offsets are never shared.

import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite
import Synchronization

/// Compiles through a memo that belongs to the hops; without one everything is compiled again.
struct ProgramCache {
  let memo: Memo?

  typealias Asking = (SourceReference) throws(SQLiteError) -> Bool

  /// What a program follows from beside answers about rows.
  struct Key: Hashable, Sendable {
    /// Position of the hop in its chain.
    let hop: Int
    let source: SourceTables
    let options: EngineOptions
    let isFinal: Bool

    /// nil for a hop some of whose keys are counted on from those of this store.
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

  /// The program of that key for a store that `isSound` asks about; `make` compiles it, and depends on nothing but the
  /// key, the hops and what it is answered.
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

  /// Programs of several kinds have the same parts.
  private struct VariantsKey<Program>: Hashable, Sendable {
    let key: Key
  }
}

/// A question about rows with its answer.
struct AskedReference: Sendable {
  let reference: SourceReference
  let isSound: Bool
}

/// The programs of one key, which differ in what was answered.
final class ProgramVariants<Program: Sendable>: Sendable {
  private struct Variant: Sendable {
    let answers: [AskedReference]
    let program: Program
  }

  /// Stores of one app have sound references in the same columns, mostly in all.
  private static var most: Int { 3 }

  private let variants = Mutex<[Variant]>([])

  /// The program for which this store gives the same answers. The questions come in the order of compilation, so no
  /// question is asked that compiling would not ask.
  func program(_ isSound: ProgramCache.Asking) throws(SQLiteError) -> Program? {
    // Asking may take long: nobody waits for it.
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
