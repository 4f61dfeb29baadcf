// What was found about forms that are not proven, in a file next to the sources.

import Diagnostics
import ManagedObjectModel
import SwiftDataSource
import SystemPackage
import TOMLDocuments

/// `hop.calibration.toml`.
package enum CalibrationFile {
  package static let name = "hop.calibration.toml"

  /// Returns what the file of a folder says, or the file beside a file; nothing where there is none.
  package static func read(besides path: FilePath) throws(HopdError) -> CalibratedForms {
    let isFile = try ModelFiles.kind(of: path) == .file
    let file = (isFile ? path.removingLastComponent() : path).appending(name)
    guard try ModelFiles.kind(of: file) != .missing else { return CalibratedForms() }
    let bytes = try ModelFiles.bytes(of: file, limit: 1 << 20)
    return try parse(String(decoding: bytes, as: UTF8.self), at: file)
  }

  /// Returns what the text of a file says.
  static func parse(_ text: String, at file: FilePath) throws(HopdError) -> CalibratedForms { CalibratedForms() }
}
