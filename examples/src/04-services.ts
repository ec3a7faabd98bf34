/** What a tool needs stands in the type of the run, and comes from a layer: one for production, one for tests. */
import { Tool, ToolCall, ToolRunner, type ValidationError } from "@allm/core"
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

const calls = [
  ToolCall.make({ id: "call_0", name: "check_stock", arguments: { item: "lamp" } }),
  ToolCall.make({ id: "call_1", name: "order", arguments: { item: "lamp", count: 2 } })
]

// The type of this effect names both services. Leave a layer out below, and the program does not compile.
const batch: Effect.Effect<
  ToolRunner.RunResult,
  ToolRunner.UnknownTool | ValidationError.ValidationError,
  Inventory | Orders
> = ToolRunner.run(calls, [checkStock, order])

const InMemory = Layer.mergeAll(
  Layer.succeed(Inventory, { count: () => Effect.succeed(7) }),
  Layer.succeed(Orders, { place: (item, count) => Effect.succeed(`ordered ${count} × ${item}`) })
)

const program = batch.pipe(
  Effect.flatMap(({ messages }) => Effect.forEach(messages, (m) => Console.log(`${m.toolCallId}: ${m.content}`))),
  Effect.provide(InMemory)
)

Effect.runPromise(program)
