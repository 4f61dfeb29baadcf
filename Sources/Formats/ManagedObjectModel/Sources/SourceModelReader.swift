// Models that are not in a model file, but in an app's source. Reading them takes a program of its own, which only the
// programs of hopd start; whoever loads models gets the reader from them.

import Diagnostics
import SystemPackage

extension HopdError.Code {
  /// There is no model in this source.
  package static let noSourceModels = HopdError.Code("no-source-models", exit: .dataError)
}

/// A reader of models in an app's source.
package protocol SourceModelReader: Sendable {
  /// Whether the user chose models of the source, so that model files beside it are not meant.
  var isNamed: Bool { get }
  /// Whether a path is a Swift file, or a folder that has one.
  func isSource(_ path: FilePath) -> Bool
  /// Returns the error for a path without models, with what was searched; nil if it has no Swift file.
  func absence(at path: FilePath) -> HopdError?
  /// Returns the versions of the model that the source at a path declares.
  func bundle(at path: FilePath, declaredOrder: [String]) throws(HopdError) -> ModelBundle
}
