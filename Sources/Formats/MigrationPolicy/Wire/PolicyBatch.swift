// The instances of one createDestinationInstances call. The engine encodes a batch in advance, while the program still
// works on the batch before it.

/// The source instances of one call, each with the object that default creation would make of it.
package struct PolicyBatch: Sendable {
  package var instances: [PolicySourceInstance] { didSet { encoded = nil } }
  /// The call as JSON, without its keys, if it was encoded in advance.
  private var encoded: [UInt8]?

  package init(_ instances: [PolicySourceInstance]) { self.instances = instances }

  /// Encodes the call as far as it does not depend on the calls before it.
  package mutating func encode() { encoded = PolicyWire.encodeCall(of: instances) }

  /// Returns the frame of the call; nil if it is longer than a frame can be.
  package func frame(keys: PolicyKeys) -> [UInt8]? {
    PolicyWire.finish(encoded ?? PolicyWire.encodeCall(of: instances), keys: keys)
  }
}
