// What commands on mapping models print with --json.

/// `mapping show`.
struct MappingShowShape: Encodable {
  let name: String
  let sourceVersion: String
  let destinationVersion: String
  let entityMappings: [EntityMapping]
  let warnings: [ErrorShape]
  /// With `--text`: the mapping as a text mapping.
  let text: String?

  struct EntityMapping: Encodable {
    let name: String
    let type: String
    @OrNull var source: String?
    @OrNull var destination: String?
    @OrNull var policy: String?
    @OrNull var filter: String?
    /// Expressions as text; null where there is none.
    let attributes: [String: OrNull<String>]
    let relationships: [String: OrNull<String>]
    /// Why it has no effect, where its type is "dead".
    @OrNull var reason: String?
  }
}

/// `mapping lint`.
struct MappingLintShape: Encodable {
  let name: String
  let path: String
  let sourceVersion: String
  let destinationVersion: String
  /// Is it used for a hop between the two versions? Else they are only the nearest ones.
  let serves: Bool
  let findings: [Finding]
  /// Why it cannot be followed; empty where it can.
  let errors: [ErrorShape]

  struct Finding: Encodable {
    let kind: String
    @OrNull var mapping: String?
    @OrNull var entity: String?
    @OrNull var property: String?
    let message: String
    let hint: String
  }
}
