// What `hopctl model list` and `model hash` write with --json. Keys are part of the interface: add, never rename.

/// `model list`.
struct ModelListShape: Encodable {
  let models: [Model]

  struct Model: Encodable {
    let name: String
    let path: String
    @OrNull var currentVersion: String?
    let order: String
    let versions: [String]
    let omitted: [Omitted]
  }

  struct Omitted: Encodable {
    let name: String
    let error: ErrorShape
  }
}

/// `model hash`.
struct ModelHashShape: Encodable {
  let versions: [Version]

  struct Version: Encodable {
    let name: String
    let current: Bool
    let identifiers: [String]
    let entityVersionHashes: [String: String]
    let versionHashesDigest: String
    let versionChecksum: String
  }
}
