/** What a tool needs stands in the type of the chat, and comes from a layer: one for production, one for tests. */
import { Allm, type Engine, Fake, Tool } from "@allm/core"
import { Console, Context, Effect, Layer, Schema } from "effect"

class Inventory extends Context.Tag("Inventory")<Inventory, {
  readonly count: (item: string) => Effect.Effect<number>
}>() {}

class Orders extends Context.Tag("Orders")<Orders, {
  readonly place: (item: string, count: number) => Effect.Effect<string>
}>() {}

const checkStock = Tool.make("check_stock", {
  description: "How many of an item there are",
  parameters: { item: Schema.String },
  handler: ({ item }) => Effect.flatMap(Inventory, (inventory) => inventory.count(item))
})

const order = Tool.make("order", {
  description: "Orders an item",
  parameters: { item: Schema.String, count: Schema.Int.pipe(Schema.positive()) },
  handler: ({ count, item }) => Effect.flatMap(Orders, (orders) => orders.place(item, count))
})

const Model = Fake.engine({
  scripts: [
    [
      Fake.toolCall({ id: "call_0", name: "check_stock", arguments: { item: "lamp" } }),
      Fake.toolCall({ id: "call_1", name: "order", arguments: { item: "lamp", count: 2 } }),
      Fake.finish("tool_calls")
    ],
    [Fake.text("Seven lamps are left, two more are on their way."), Fake.finish("stop")]
  ]
})

// The type of this effect names both services. Leave a layer out below, and the program does not compile.
const program: Effect.Effect<void, Allm.ChatError, Engine.Engine | Inventory | Orders> = Effect.gen(function*() {
  const { finalResponse, steps } = yield* Allm.chat("Are there lamps? Order two.", { tools: [checkStock, order] })

  for (const { content } of steps.flatMap((step) => step.toolResults)) yield* Console.log(`  ${content}`)
  yield* Console.log(finalResponse.outputText)
})

const InMemory = Layer.mergeAll(
  Layer.succeed(Inventory, { count: () => Effect.succeed(7) }),
  Layer.succeed(Orders, { place: (item, count) => Effect.succeed(`ordered ${count} × ${item}`) })
)

Effect.runPromise(Effect.provide(program, Layer.merge(Model, InMemory)))
