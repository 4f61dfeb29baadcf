// The hops of a plan as `plan --json` prints them; the lines of a plan are made of the same values.

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

  /// A migration policy class, and whether a program stands in for it.
  struct Policy: Encodable {
    let name: String
    let bound: Bool
  }

  struct Entity: Encodable {
    @OrNull var source: String?
    @OrNull var destination: String?
    let type: String
    /// Name of the entity mapping; null for an inferred one.
    @OrNull var mapping: String?
    let rows: Int64
    let execution: String
    /// Why it is not done in SQL.
    let reasons: [String]
    let drops: [Drop]
  }

  struct Drop: Encodable {
    let column: String
    let property: String
    let nonNull: Int64
  }
}
