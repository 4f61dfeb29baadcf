// Apps whose stores are met without their app, by entities that their models have. An app is added with a store, or
// with a listing of its Z_PRIMARYKEY that somebody published; the comment of each row says which.

/// An app, or a part of a system, that a model belongs to.
struct KnownApp {
  let name: String
  /// The usual name of the store.
  let store: String
  /// Entities that its model has in every version seen.
  let entities: Set<String>

  /// Returns the app whose entities are all there; nil if none is.
  static func of(_ entities: some Sequence<String>) -> KnownApp? {
    let found = Set(entities)
    return all.first { $0.entities.isSubset(of: found) }
  }

  var json: JSONObject { ["name": name, "store": store] }

  private static let all = [
    // Stores of macOS 10.15 to 26.1: test libraries of osxphotos.
    KnownApp(
      name: "Photos", store: "Photos.sqlite",
      entities: ["AdditionalAssetAttributes", "Asset", "CloudMaster", "DetectedFace", "GenericAlbum", "Moment"]),
    // Stores of apple-notes-parser; published listings of Z_PRIMARYKEY of macOS and iOS.
    KnownApp(
      name: "Notes", store: "NoteStore.sqlite",
      entities: ["ICAccount", "ICAttachment", "ICCloudSyncingObject", "ICFolder", "ICNote", "ICNoteData"]),
    // Stores of macOS 10.13 and 10.14: test data of plaso.
    KnownApp(
      name: "knowledgeC (app usage and device activity)", store: "knowledgeC.db",
      entities: [
        "ContextualChangeRegistration", "CustomMetadata", "Event", "Histogram", "Source", "StructuredMetadata",
      ]),
    // A store of fw 977: test data of plaso.
    KnownApp(
      name: "Accounts (Internet accounts)", store: "Accounts3.sqlite",
      entities: ["Account", "AccountProperty", "AccountType", "Authorization", "CredentialItem", "Dataclass"]),
    // A store of fw 1044: test data of plaso.
    KnownApp(
      name: "Screen Time", store: "RMAdminStore-Local.sqlite",
      entities: ["CoreDevice", "CoreUser", "InstalledApp", "ScreenTimeSettings", "UsageBlock", "UsageTimedItem"]),
    // A store: test data of plaso.
    KnownApp(
      name: "network usage", store: "netusage.sqlite",
      entities: [
        "AppExperience", "LiveUsage", "NetworkAttachment", "NWActivityFragment", "Process", "ProvisioningData",
      ]),
    // A store of iOS 15, fw 1145: a public forensic image in the tests of iLEAPP.
    KnownApp(
      name: "WhatsApp (calls)", store: "CallHistory.sqlite",
      entities: ["WAAggregateCallEvent", "WACDCallEvent", "WACDCallEventParticipant"]),
  ]
}
