// The argument FILE of the commands about the daemon's configuration.

import ArgumentParser
import DurableFiles
import HopdConfiguration
import SystemPackage

/// `[FILE]`: one configuration file instead of the installed configuration.
struct ConfigurationArgument: ParsableArguments {
  @Argument(help: "Configuration file, with its drop-ins (FILE.d)", completion: .file())
  var file: String?

  /// Loads the named file, or the installed configuration.
  func load() throws -> LoadedConfiguration {
    guard let path = try path() else { return try ConfigurationLoader().load() }
    return try ConfigurationLoader.load(file: path)
  }

  /// The absolute path of the named file; nil for the installed configuration.
  func path() throws -> FilePath? {
    guard let path = file.map({ FilePath($0) }) else { return nil }
    // Messages show an absolute path as typed.
    return path.isAbsolute ? path : try path.resolvedInFolder()
  }
}
