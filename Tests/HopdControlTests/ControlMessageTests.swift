// Messages as bytes: what is none is refused, whatever it is, and what is one survives the way there and back.

import Testing

@testable import HopdControl

@Suite struct ControlMessageTests {
  @Test func callsAndRepliesSurviveTheWay() throws {
    let parameters = ControlValue.object([
      "text": .string("ä \"\\ \u{1}"), "list": .array([.integer(1), .number(0.5), .boolean(true), .null]),
      "big": .integer(.max),
    ])
    let call = ControlCall(method: "io.hopd.Control.GetStatus", parameters: parameters, more: true)
    #expect(call.bytes.last == 0 && !call.bytes.dropLast().contains(0))
    #expect(ControlCall(Array(call.bytes.dropLast())) == call)
    let reply = ControlReply(parameters, error: "io.hopd.Control.NotFound", continues: true)
    #expect(ControlReply(Array(reply.bytes.dropLast())) == reply)
  }

  @Test func whatIsNoCallIsRefused() {
    let deep = String(repeating: "[", count: 4000) + String(repeating: "]", count: 4000)
    for text in [
      "", "{", "[]", "null", "7", "{}", "{\"method\":7}", "{\"method\":\"a.B\",\"parameters\":[]}", "\u{0}",
      "{\"method\":\"a.B\"}x", "{\"method\":\"a.B\",\"parameters\":{\"x\":\(deep)}}", deep, "{\"method\":\"a.B\"",
    ] { #expect(ControlCall(Array(text.utf8)) == nil, "\(text.prefix(60))") }
    #expect(ControlCall([0xff, 0xfe, 0x7b]) == nil)
    // Brackets in texts are no depth.
    let text = "{\"method\":\"a.B\",\"parameters\":{\"x\":\"\(deep)\\\"\(deep)\"}}"
    #expect(ControlCall(Array(text.utf8))?.method == "a.B")
  }

  @Test func everyServiceAnswersTheStandardQuestions() throws {
    func ask(_ method: String, _ parameters: [String: ControlValue] = [:]) -> ControlReply? {
      ControlInterface.standardReply(
        ControlCall(method: method, parameters: .object(parameters)), methods: ["GetStatus"])
    }
    let names = ask("org.varlink.service.GetInfo")?.parameters["interfaces"]?.list?.compactMap(\.text)
    #expect(names == ["org.varlink.service", "io.hopd.Control"])
    for name in names ?? [] {
      let text = ask("org.varlink.service.GetInterfaceDescription", ["interface": .string(name)])?
        .parameters["description"]?.text
      #expect(text?.contains("interface \(name)") == true)
    }
    #expect(ask("io.hopd.Control.GetStatus") == nil)
    #expect(ask("io.hopd.Control.Nothing")?.error == "org.varlink.service.MethodNotFound")
    #expect(ask("a.b.C")?.error == "org.varlink.service.InterfaceNotFound")
    #expect(ask("nothing")?.error == "org.varlink.service.InterfaceNotFound")
    #expect(
      ask("org.varlink.service.GetInterfaceDescription")?.error == "org.varlink.service.InvalidParameter")
  }
}
