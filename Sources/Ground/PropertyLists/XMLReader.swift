// XML as events, by expat. Users can edit the XML of Xcode's models and settings, so the reader refuses hostile
// documents: entities of their own, external ones, depth, size, and floods of attributes.

import CExpat
import Diagnostics

extension HopdError.Code {
  /// A document is not well-formed XML, or uses a refused feature.
  package static let damagedXML = HopdError.Code("xml-damaged", exit: .dataError)
  /// A document is larger or deeper than the limits.
  package static let xmlTooLarge = HopdError.Code("xml-too-large", exit: .dataError)
}

/// The limits of an XML document.
package struct XMLLimits: Sendable, Hashable {
  /// Bytes of the document.
  package var maximumBytes: Int
  /// Depth of nested elements.
  package var maximumDepth: Int
  /// Attributes of one element.
  package var maximumAttributes: Int
  /// Bytes of one run of text or of one attribute value.
  package var maximumTextBytes: Int

  /// Makes limits.
  package init(maximumBytes: Int, maximumDepth: Int, maximumAttributes: Int, maximumTextBytes: Int) {
    self.maximumBytes = maximumBytes
    self.maximumDepth = maximumDepth
    self.maximumAttributes = maximumAttributes
    self.maximumTextBytes = maximumTextBytes
  }

  /// Limits for models: the deepest element of a model is at depth six, an attribute has some twenty XML attributes,
  /// and a model of thousands of properties takes less than 1 MiB. Larger documents would take a second to refuse.
  package static let standard = XMLLimits(
    maximumBytes: 6 << 20, maximumDepth: 32, maximumAttributes: 128, maximumTextBytes: 1 << 20)
}

/// One attribute of an element.
package struct XMLAttribute: Sendable, Hashable {
  /// Name as written.
  package let name: String
  /// Value with references resolved.
  package let value: String
}

/// Line and column in a document, both from 1.
package struct XMLPosition: Sendable, Hashable {
  /// Line, from 1.
  package let line: Int
  /// Column, from 1.
  package let column: Int

  var place: Place { Place(line: line, column: column) }
}

/// Receives the events of a document; an error that it throws ends the reading, and `XMLReader.read` rethrows it.
package protocol XMLEventHandler: AnyObject {
  /// An element begins.
  func startElement(_ name: String, attributes: [XMLAttribute], at position: XMLPosition) throws(HopdError)
  /// An element ends.
  func endElement(_ name: String, at position: XMLPosition) throws(HopdError)
  /// Text between two tags, whole and never empty.
  func text(_ text: String, at position: XMLPosition) throws(HopdError)
}

/// Reads XML documents.
package enum XMLReader {
  /// Bytes that expat may use for its tables, without buffers: Xcode's documents take some ten kilobytes. It keeps
  /// every distinct name, so 8 MiB of distinct names would take more than 100 MiB.
  private static let parserBytes = 16 << 20

  /// Reads a whole document and passes its events to `handler`.
  ///
  /// Throws for a document that is not well-formed, that is beyond the limits, or that declares attributes or entities
  /// of its own. `place` is the origin of the bytes, for errors; line and column are added.
  package static func read(
    _ bytes: [UInt8], limits: XMLLimits = .standard, at place: Place = Place(), to handler: any XMLEventHandler
  ) throws(HopdError) {
    guard bytes.count <= limits.maximumBytes, let length = Int32(exactly: bytes.count) else {
      throw HopdError(
        .xmlTooLarge, "the document has \(bytes.count) bytes; more than \(limits.maximumBytes) are not read", at: place)
    }
    // Expat splits a whole tag into attributes before it hands it on. `<` cannot be inside a tag, so the longest run
    // without one bounds every tag, and a flood of attributes is refused before it takes memory.
    guard longestRun(of: bytes) <= limits.maximumTextBytes else {
      throw HopdError(.xmlTooLarge, "a tag or text has more than \(limits.maximumTextBytes) bytes", at: place)
    }
    guard let parser = hopd_expat_create(parserBytes) else {
      throw HopdError(.internalError, "no memory for an XML parser", at: place)
    }
    defer { XML_ParserFree(parser) }
    let bridge = Bridge(parser: parser, limits: limits, place: place, handler: handler)
    // The bridge outlives every callback: XML_Parse below makes all of them.
    XML_SetUserData(parser, Unmanaged.passUnretained(bridge).toOpaque())
    XML_SetElementHandler(parser, { Bridge.from($0)?.start($1, $2) }, { userData, _ in Bridge.from(userData)?.end() })
    XML_SetCharacterDataHandler(parser, { Bridge.from($0)?.characters($1, $2) })
    XML_SetEntityDeclHandler(parser, { userData, _, _, _, _, _, _, _, _ in Bridge.from(userData)?.refuseEntity() })
    // Expat adds a declared default to every element of that name: a few bytes would unfold into many.
    XML_SetAttlistDeclHandler(parser, { userData, _, _, _, _, _ in Bridge.from(userData)?.refuseDeclaration() })
    XML_SetSkippedEntityHandler(parser, { userData, _, _ in Bridge.from(userData)?.refuseEntity() })

    let status = withExtendedLifetime(bridge) {
      // In one piece: then expat reads from this buffer and never scans a long token twice.
      bytes.withUnsafeBytes { buffer in
        XML_Parse(parser, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), length, 1)
      }
    }
    if let error = bridge.error { throw error }
    guard status == XML_STATUS_OK else {
      if XML_GetErrorCode(parser) == XML_ERROR_NO_MEMORY {
        throw HopdError(.xmlTooLarge, "the document has too many different names", at: bridge.here)
      }
      let reason = XML_ErrorString(XML_GetErrorCode(parser)).map { String(cString: $0) } ?? "unknown error"
      throw HopdError(.damagedXML, "the document is not well-formed XML: \(reason)", at: bridge.here)
    }
  }

  /// Length of the longest run of bytes without `<`.
  private static func longestRun(of bytes: [UInt8]) -> Int {
    bytes.withUnsafeBufferPointer { buffer in
      var longest = 0
      var start = 0
      for index in buffer.indices where buffer[index] == UInt8(ascii: "<") {
        longest = max(longest, index - start)
        start = index
      }
      return max(longest, buffer.count - start)
    }
  }
}

/// The target of expat's callbacks: it turns them into events and keeps the first error.
private final class Bridge {
  private let parser: XML_Parser
  private let limits: XMLLimits
  private let place: Place
  private let handler: any XMLEventHandler
  private var names: [String] = []
  private var pending: [UInt8] = []
  private var pendingPosition = XMLPosition(line: 1, column: 1)
  private(set) var error: HopdError?

  init(parser: XML_Parser, limits: XMLLimits, place: Place, handler: any XMLEventHandler) {
    self.parser = parser
    self.limits = limits
    self.place = place
    self.handler = handler
  }

  static func from(_ userData: UnsafeMutableRawPointer?) -> Bridge? {
    userData.map { Unmanaged<Bridge>.fromOpaque($0).takeUnretainedValue() }
  }

  private var position: XMLPosition {
    XMLPosition(
      line: Int(clamping: XML_GetCurrentLineNumber(parser)),
      column: Int(clamping: XML_GetCurrentColumnNumber(parser)) &+ 1)
  }

  /// The place with the parser's line and column.
  var here: Place { position.place.filled(from: place) }

  func start(_ name: UnsafePointer<CChar>?, _ values: UnsafeMutablePointer<UnsafePointer<CChar>?>?) {
    perform { () throws(HopdError) in
      guard let name else { return }
      try flush()
      guard names.count < limits.maximumDepth else {
        throw HopdError(.xmlTooLarge, "elements are nested deeper than \(limits.maximumDepth)", at: here)
      }
      var attributes: [XMLAttribute] = []
      var cursor = values
      while let pair = cursor, let name = pair.pointee, let value = pair.advanced(by: 1).pointee {
        guard attributes.count < limits.maximumAttributes else {
          throw HopdError(.xmlTooLarge, "an element has more than \(limits.maximumAttributes) attributes", at: here)
        }
        let text = String(cString: value)
        guard text.utf8.count <= limits.maximumTextBytes else { throw tooMuchText() }
        attributes.append(XMLAttribute(name: String(cString: name), value: text))
        cursor = pair.advanced(by: 2)
      }
      let element = String(cString: name)
      names.append(element)
      try handler.startElement(element, attributes: attributes, at: position)
    }
  }

  func end() {
    perform { () throws(HopdError) in
      try flush()
      guard let element = names.popLast() else { return }
      try handler.endElement(element, at: position)
    }
  }

  func characters(_ text: UnsafePointer<CChar>?, _ length: Int32) {
    perform { () throws(HopdError) in
      guard let text, length > 0 else { return }
      if pending.isEmpty { pendingPosition = position }
      guard pending.count + Int(length) <= limits.maximumTextBytes else { throw tooMuchText() }
      pending.append(contentsOf: UnsafeRawBufferPointer(start: text, count: Int(length)))
    }
  }

  func refuseEntity() { refuse("the document declares or uses entities of its own; they are refused") }

  func refuseDeclaration() { refuse("the document declares attributes of its own; that is refused") }

  private func refuse(_ what: String) {
    perform { () throws(HopdError) in throw HopdError(.damagedXML, what, at: here) }
  }

  private func flush() throws(HopdError) {
    guard !pending.isEmpty else { return }
    let text = String(decoding: pending, as: UTF8.self)
    pending.removeAll(keepingCapacity: true)
    try handler.text(text, at: pendingPosition)
  }

  private func tooMuchText() -> HopdError {
    HopdError(.xmlTooLarge, "a text has more than \(limits.maximumTextBytes) bytes", at: here)
  }

  /// Runs one callback; the first error stops the parser, and later callbacks (expat may still make some) have no
  /// effect.
  private func perform(_ body: () throws(HopdError) -> Void) {
    guard error == nil else { return }
    do {
      try body()
    } catch {
      self.error = error.located(here)
      XML_StopParser(parser, XML_Bool(XML_FALSE))
    }
  }
}
