// The hops of a plan as `plan --json` prints them; the text output uses the same values.

/// Parts of `plan`.
enum PlanShape {
  struct Hop: JSONValue {
    let source: String
    let destination: String
    let kind: String
    /// Names of the mapping models, in the order in which they run.
    let mappings: [String]
    let policies: [Policy]
    let entities: [Entity]
  }

  /// A migration policy class, and whether a program is bound to it.
  struct Policy: Encodable {
    let name: String
    let bound: Bool
  }

  struct Entity: Encodable {
    @OrNull var source: String?
    @OrNull var destination: String?
    let type: String
    /// Name of the entity mapping; null if it is inferred.
    @OrNull var mapping: String?
    let rows: Int64
    let execution: String
    /// Why it does not run in SQL.
    let reasons: [String]
    let drops: [Drop]
  }

  struct Drop: Encodable {
    let column: String
    let property: String
    let nonNull: Int64
  }
}
