/// What ends the pin of a restored store without an order for that store.
package enum PinRule: String, Sendable, Hashable, CaseIterable {
  /// Nothing.
  case byHand = "by-hand"
  /// A target that the restore did not replace.
  case newVersion = "new-version"
}
