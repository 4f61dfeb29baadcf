// swift-tools-version: 6.1
// A program with GRDB that reads an exported database by the record types that hopctl printed (tools/exchange-readers).
import PackageDescription

let package = Package(
  name: "grdb-reader",
  dependencies: [.package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0")],
  targets: [.executableTarget(name: "Reader", dependencies: [.product(name: "GRDB", package: "GRDB.swift")])])
