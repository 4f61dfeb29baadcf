// Finds the configuration files and merges them in order: the vendor's file, the administrator's file, then the
// drop-ins of both folders in the order of their names.

import Diagnostics
import Glibc
import SystemPackage
import TOMLDocuments

/// A configuration with the files that it was loaded from.
package struct LoadedConfiguration: Sendable {
  /// The valid configuration.
  package var configuration: Configuration
  /// Warnings, such as unknown keys.
  package var warnings: [HopdError]
  /// The files in force; later ones override earlier ones.
  package var files: [FilePath]
  /// The places of the keys of watches, policies and `[daemon]`, by a path such as `watch.library.models`.
  package var places: [String: Place] = [:]

  /// Returns file, line and column of a key, or of the nearest table around it.
  package func place(of key: String) -> Place {
    var known = key
    while true {
      if var place = places[known] {
        place.key = key
        return place
      }
      guard let dot = known.lastIndex(of: ".") else { return Place(file: files.last, key: key) }
      known = String(known[..<dot])
    }
  }

  /// Notes the places of a node and of everything below it.
  mutating func notePlaces(of node: TOMLNode, as key: String) {
    places[key] = node.place(key: key)
    guard case .table(let entries) = node.value else { return }
    for (name, entry) in entries { notePlaces(of: entry, as: "\(key).\(name)") }
  }
}

/// Finds, reads, merges and checks the configuration files.
package struct ConfigurationLoader: Sendable {
  /// Folder of the vendor's file and drop-ins.
  package var vendor: FilePath
  /// Folder of the administrator's file and drop-ins.
  package var administrator: FilePath

  /// Uses the given folders.
  package init(vendor: FilePath = "/usr/lib/hopd", administrator: FilePath = "/etc/hopd") {
    self.vendor = vendor
    self.administrator = administrator
  }

  /// Loads the installed configuration. A missing file is not an error: the defaults are complete, and `isConfigured`
  /// is false if there is no watch.
  ///
  /// - Throws: One error, with every mistake of every file in `reasons`.
  package func load() throws(HopdError) -> LoadedConfiguration {
    let (files, reasons) = found()
    return try Self.load(files, reasons: reasons)
  }

  /// The existing files that `load` reads; later ones override earlier ones.
  package func files() throws(HopdError) -> [FilePath] {
    let (files, reasons) = found()
    if let first = reasons.first { throw first }
    return files.filter { $0.withPlatformString { access($0, F_OK) } == 0 }
  }

  /// The files that `load(file:)` reads.
  package static func files(of file: FilePath) throws(HopdError) -> [FilePath] {
    guard let name = file.lastComponent else { return [] }
    let folder = file.removingLastComponent().appending("\(name.string).d")
    return [file] + (try dropIns(in: folder))
  }

  private func found() -> (files: [FilePath], reasons: [HopdError]) {
    var reasons: [HopdError] = []
    var files = [vendor.appending("hopd.toml"), administrator.appending("hopd.toml")]
    var dropIns: [String: FilePath] = [:]
    for folder in [vendor, administrator] {
      do {
        for file in try Self.dropIns(in: folder.appending("hopd.toml.d")) {
          dropIns[file.lastComponent?.string ?? ""] = file
        }
      } catch {
        reasons.append(error)
      }
    }
    files += dropIns.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map(\.value)
    return (files, reasons)
  }

  /// Loads one file and its own drop-ins (`FILE.d/*.toml`) instead of the installed files; the file must exist.
  package static func load(file: FilePath) throws(HopdError) -> LoadedConfiguration {
    guard file.lastComponent != nil else {
      throw HopdError(.notFound, "no configuration file is specified", at: Place(file: file))
    }
    guard try TOMLFile.text(of: file, called: "configuration", code: .configurationInvalid) != nil else {
      throw HopdError(.notFound, "the configuration file does not exist", at: Place(file: file))
    }
    return try load(files(of: file), reasons: [])
  }

  private static func load(_ files: [FilePath], reasons: [HopdError]) throws(HopdError) -> LoadedConfiguration {
    var reasons = reasons
    var root = TOMLNode.empty
    var watches = WatchList()
    var used: [FilePath] = []
    for file in files {
      do {
        // An empty file, or a link to /dev/null, only masks another file of its name.
        guard let text = try TOMLFile.text(of: file, called: "configuration", code: .configurationInvalid),
          !text.isEmpty
        else { continue }
        var node = try TOMLNode(toml: text, file: file, code: .configurationInvalid)
        reasons += watches.take(from: &node)
        root = root.merged(with: node)
        used.append(file)
      } catch {
        reasons.append(error)
      }
    }
    var reader = ConfigurationReader()
    let configuration = reader.read(root, watches: watches.nodes)
    reasons += reader.errors
    if reasons.count == 1, reader.warnings.isEmpty, let only = reasons.first { throw only }
    if !reasons.isEmpty {
      let mistakes = reasons.count
      // A key in the wrong table is unknown there, and often the cause of a mistake elsewhere.
      reasons += reader.warnings
      // In the order of files and lines, in which an operator repairs them.
      func rank(_ error: HopdError) -> (Int, Int, Int) {
        (files.firstIndex { $0 == error.place.file } ?? -1, error.place.line ?? 0, error.place.column ?? 0)
      }
      reasons.sort { rank($0) < rank($1) }
      let unknown = reader.warnings.count
      throw HopdError(
        .configurationInvalid,
        "the configuration has \(mistakes) \(mistakes == 1 ? "mistake" : "mistakes")"
          + (unknown == 0 ? "" : " and \(unknown) unknown \(unknown == 1 ? "key" : "keys")"), reasons: reasons)
    }
    var loaded = LoadedConfiguration(configuration: configuration, warnings: reader.warnings, files: used)
    for (watch, node) in zip(configuration.watches, watches.nodes) {
      loaded.notePlaces(of: node, as: "watch.\(watch.name)")
    }
    if case .table(let entries) = root.value {
      for name in ["daemon", "policies"] { entries[name].map { loaded.notePlaces(of: $0, as: name) } }
    }
    return loaded
  }

  // MARK: Files

  /// The `.toml` files of a folder in the order of their names; empty if there is no folder.
  private static func dropIns(in folder: FilePath) throws(HopdError) -> [FilePath] {
    var files: [FilePath] = []
    do throws(Errno) {
      try folder.readEntries { entry in
        if let component = entry.component, component.extension == "toml", component.stem.isEmpty == false,
          !component.string.hasPrefix(".")
        {
          files.append(folder.appending(component))
        }
        return true
      }
    } catch {
      if error == .noSuchFileOrDirectory || error == .notDirectory { return [] }
      throw HopdError(
        error == .permissionDenied ? .noPermission : .inputOutput, "cannot read the drop-in directory",
        at: Place(file: folder), cause: error, hint: "ls -ld \(folder.quotedForShell)")
    }
    return files.sorted { $0.string.utf8.lexicographicallyPrecedes($1.string.utf8) }
  }
}

/// The `[[watch]]` tables of all files, merged by their names.
private struct WatchList {
  private(set) var nodes: [TOMLNode] = []
  private var places: [String: Int] = [:]

  /// Moves the watches from a file's tree into the list; returns the mistakes in their names.
  mutating func take(from root: inout TOMLNode) -> [HopdError] {
    guard case .table(var entries) = root.value, let node = entries.removeValue(forKey: "watch") else { return [] }
    root.value = .table(entries)
    var errors: [HopdError] = []
    func wrong(_ node: TOMLNode, _ key: String, _ message: String, _ hint: String) {
      errors.append(HopdError(.configurationInvalid, message, at: node.place(key: key), hint: hint))
    }
    guard case .array(let elements) = node.value else {
      wrong(
        node, "watch", "`watch` must be an array of tables, not \(node.kind)", "write [[watch]] with double brackets")
      return errors
    }
    var here: Set<String> = []
    for element in elements {
      guard case .table(let table) = element.value else {
        wrong(element, "watch", "`watch` contains \(element.kind), not a table", "write [[watch]]")
        continue
      }
      guard let nameNode = table["name"], case .string(let name) = nameNode.value, Self.isName(name) else {
        wrong(
          table["name"] ?? element, "watch.name", "a watch needs a `name` of letters, digits, `-`, `_` and `.`",
          "write name = \"library\"")
        continue
      }
      if !here.insert(name).inserted {
        wrong(
          nameNode, "watch.\(name).name", "two watches of this file have the same name",
          "rename one of them")
      } else if let index = places[name] {
        nodes[index] = nodes[index].merged(with: element)
      } else {
        places[name] = nodes.count
        nodes.append(element)
      }
    }
    return errors
  }

  /// Whether a name is valid. Names are part of keys, journal fields and messages.
  private static func isName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
          || "-_.".utf8.contains(byte)
      }
  }
}
