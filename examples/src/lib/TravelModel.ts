/** A model that plans a journey: four scripted answers, word by word, as a real one would give them. */
import { Fake } from "@allm/core"

const words = (entry: (text: string) => Fake.Entry, text: string) => (text.match(/\S+\s*/g) ?? []).map(entry)

const thinks = (text: string) => words(Fake.reasoning, text)
const says = (text: string) => words(Fake.text, text)

/** A call whose arguments come in pieces. */
const calls = (id: string, name: string, args: { readonly [key: string]: unknown } = {}) =>
  (JSON.stringify(args).match(/.{1,5}/g) ?? []).map((delta) => Fake.toolCallDelta({ id, name, delta }))

const ends = (reason: "tool_calls" | "stop", inputTokens: number, outputTokens: number) => [
  Fake.usage({ inputTokens, outputTokens }),
  Fake.finish(reason)
]

export const layer = Fake.layer({
  delay: "30 millis",
  scripts: [
    [
      ...thinks("Weather, flights and a room do not depend on each other. All of them at once, then."),
      ...says("Let me look around."),
      ...calls("call_0", "get_weather", { city: "Oslo" }),
      ...calls("call_1", "search_flights", { to: "Oslo" }),
      ...calls("call_2", "book_hotel", { hotel: "Grand" }),
      ...calls("call_3", "exchange_rate"),
      ...ends("tool_calls", 412, 96)
    ],
    [
      ...thinks("The Grand is full. I do not know why there is no exchange rate, but I can do without."),
      ...says("The Grand is full, so I try the Plaza, and ask the museum for its hours."),
      ...calls("call_4", "book_hotel", { hotel: "Plaza" }),
      ...calls("call_5", "call_museum"),
      ...calls("call_6", "set_budget", { euros: "600" }),
      ...calls("call_7", "find_restaurant"),
      ...ends("tool_calls", 655, 118)
    ],
    [
      ...thinks("The budget is a number, and there is nobody to find a restaurant."),
      ...calls("call_8", "set_budget", { euros: 600 }),
      ...calls("call_9", "send_fax"),
      ...ends("tool_calls", 931, 47)
    ],
    [
      ...says("You fly with SK 1472 at 09:40 for 129 EUR and stay three nights at the Plaza. "),
      ...says("The weather is fine. The museum can be reached neither by telephone nor by fax: just go there."),
      ...ends("stop", 1040, 71)
    ]
  ]
})
