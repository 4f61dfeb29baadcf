// swift-tools-version: 6.2
// hopctl-swiftdata-reader: reads Swift source for hopctl, in a process of its own (docs/decisions/0186). A package of
// its own, because swift-syntax takes minutes to build and only users of SwiftData need it: `make swiftdata`.

import PackageDescription

let package = Package(
  name: "SourceReader",
  products: [.executable(name: "hopctl-swiftdata-reader", targets: ["hopctl-swiftdata-reader"])],
  dependencies: [.package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1")],
  targets: [
    .target(name: "CConfinement"),
    .executableTarget(
      name: "hopctl-swiftdata-reader",
      dependencies: [
        "CConfinement", .product(name: "SwiftParser", package: "swift-syntax"),
        .product(name: "SwiftDiagnostics", package: "swift-syntax"),
        .product(name: "SwiftParserDiagnostics", package: "swift-syntax"),
        .product(name: "SwiftSyntax", package: "swift-syntax"),
      ],
      swiftSettings: [
        .swiftLanguageMode(.v6), .treatAllWarnings(as: .error), .enableUpcomingFeature("ExistentialAny"),
      ]),
  ])
