// The XML event reader alone: the events that it passes on, and how an error of the receiver ends the reading.

import Diagnostics
import PropertyLists
import Testing

/// Records events as lines.
private final class Recorder: XMLEventHandler {
  var lines: [String] = []
  var failAt: String?

  func startElement(_ name: String, attributes: [XMLAttribute], at position: XMLPosition) throws(HopdError) {
    if name == failAt { throw HopdError(.usage, "enough") }
    let values = attributes.map { " \($0.name)=\($0.value)" }.joined()
    lines.append("\(position.line):\(position.column) <\(name)\(values)>")
  }
  func endElement(_ name: String, at position: XMLPosition) throws(HopdError) { lines.append("</\(name)>") }
  func text(_ text: String, at position: XMLPosition) throws(HopdError) { lines.append("“\(text)”") }
}

@Suite struct XMLReaderTests {
  @Test func eventsComeInOrderWithPositions() throws {
    let recorder = Recorder()
    try XMLReader.read(Array("<a x='1' y='&lt;é'>\n  <b/>one\ntwo</a>".utf8), to: recorder)
    #expect(recorder.lines == ["1:1 <a x=1 y=<é>", "“\n  ”", "2:3 <b>", "</b>", "“one\ntwo”", "</a>"])
  }

  @Test func anErrorOfTheReceiverEndsTheReading() {
    let recorder = Recorder()
    recorder.failAt = "b"
    let error = #expect(throws: HopdError.self) {
      try XMLReader.read(Array("<a>\n<b/><c/></a>".utf8), to: recorder)
    }
    #expect(error?.code == .usage)
    #expect(error?.place.line == 2)
    #expect(!recorder.lines.contains { $0.contains("<c>") })
  }

  @Test func illFormedDocumentsSayWhere() {
    let error = #expect(throws: HopdError.self) { try XMLReader.read(Array("<a>\n</b>".utf8), to: Recorder()) }
    #expect(error?.code == .damagedXML)
    #expect(error?.place.line == 2)
    for text in ["", "<a", "<a>\u{0}</a>", "<a>&#0;</a>", "<a/><b/>"] {
      #expect(throws: HopdError.self) { try XMLReader.read(Array(text.utf8), to: Recorder()) }
    }
    #expect(throws: HopdError.self) {
      try XMLReader.read(Array("<a>".utf8) + [0xff] + Array("</a>".utf8), to: Recorder())
    }
  }

  @Test func declaredDefaultsAreRefused() {
    let text = "<!DOCTYPE a [<!ATTLIST a x CDATA 'y'>]><a/>"
    let error = #expect(throws: HopdError.self) { try XMLReader.read(Array(text.utf8), to: Recorder()) }
    #expect(error?.code == .damagedXML)
  }

  @Test func floodsAreRefused() {
    let attributes = (0..<1_000).map { " a\($0)=''" }.joined()
    #expect(throws: HopdError.self) { try XMLReader.read(Array("<a\(attributes)/>".utf8), to: Recorder()) }
    let long = String(repeating: "x", count: 2 << 20)
    #expect(throws: HopdError.self) { try XMLReader.read(Array("<a b='\(long)'/>".utf8), to: Recorder()) }
    #expect(throws: HopdError.self) { try XMLReader.read(Array("<a>\(long)</a>".utf8), to: Recorder()) }
    let deep = String(repeating: "<a>", count: 100_000)
    let error = #expect(throws: HopdError.self) { try XMLReader.read(Array(deep.utf8), to: Recorder()) }
    #expect(error?.code == .xmlTooLarge)
  }

  /// Found by fuzzing: expat keeps every name, and some megabytes of names took more than a hundred.
  @Test func floodsOfDifferentNamesAreRefused() throws {
    let names = (0..<400_000).map { "<x\(String($0, radix: 36))/>" }.joined()
    let error = #expect(throws: HopdError.self) { try XMLReader.read(Array("<a>\(names)</a>".utf8), to: Recorder()) }
    #expect(error?.code == .xmlTooLarge)
    #expect(error?.message.contains("different names") == true)
    // The next document of the same thread has the whole budget again.
    let recorder = Recorder()
    try XMLReader.read(Array("<a/>".utf8), to: recorder)
    #expect(recorder.lines.count == 2)
  }
}
