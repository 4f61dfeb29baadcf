// FILE of the commands about the daemon's configuration.

import ArgumentParser
import DurableFiles
import HopdConfiguration
import SystemPackage

/// `[FILE]`: one configuration file instead of what is installed.
struct ConfigurationArgument: ParsableArguments {
  @Argument(help: "A configuration file; its own drop-ins (FILE.d) belong to it.", completion: .file())
  var file: String?

  /// The named file, or what is installed.
  func load() throws -> LoadedConfiguration {
    guard let path = try path() else { return try ConfigurationLoader().load() }
    return try ConfigurationLoader.load(file: path)
  }

  /// The named file from the root; nil for what is installed.
  func path() throws -> FilePath? {
    guard let path = file.map({ FilePath($0) }) else { return nil }
    // Messages show the file that was named.
    return path.isAbsolute ? path : try path.resolvedInFolder()
  }
}
