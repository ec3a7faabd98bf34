/**
 * A chat server: POST what a person says, read the turn as server-sent events. Whoever hangs up stops it, and it is saved.
 *
 * `npm run example -- http-server serve` starts it on port 3000, for
 * `curl -N localhost:3000/chat/ada -d '{"message":"Hello"}'`.
 */
import { Event, Fake, Message, SessionLease, SessionRunner, SessionStore, ToolJournal } from "@allm/core"
import {
  HttpClient,
  HttpClientRequest,
  HttpClientResponse,
  HttpRouter,
  HttpServer,
  HttpServerRequest,
  HttpServerResponse
} from "@effect/platform"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer, Option, Schema, Sink, Stream } from "effect"
import { createServer } from "node:http"
import { argv } from "node:process"

// --- the server ---

const EventJson = Schema.parseJson(Event.Event)
const Path = Schema.Struct({ session: Schema.NonEmptyString })
const Refusal = Schema.Struct({ _tag: Schema.String, message: Schema.String })
const Body = Schema.Struct({ message: Schema.NonEmptyString })

const turn = (session: string, message: string) =>
  Stream.catchTag(
    SessionRunner.streamReply(session, message),
    "NotFound",
    () => SessionRunner.streamStart(session, message)
  )

const chat = Effect.gen(function*() {
  const { session } = yield* HttpRouter.schemaPathParams(Path)
  const { message } = yield* HttpServerRequest.schemaBodyJson(Body)
  // What goes wrong before the first event is a status; what goes wrong later can only be told in the stream.
  const [first, rest] = yield* Stream.peel(turn(session, message), Sink.take(1))
  const frames = Stream.concat(Stream.fromChunk(first), rest).pipe(
    Stream.mapEffect(Schema.encode(EventJson)),
    Stream.map((event) => `data: ${event}\n\n`),
    Stream.catchAll(({ _tag, message }) => Stream.make(`event: error\ndata: ${JSON.stringify({ _tag, message })}\n\n`))
  )
  return HttpServerResponse.stream(Stream.encodeText(frames), { contentType: "text/event-stream" })
})

const refuse = (status: number) => ({ _tag, message }: typeof Refusal.Type) =>
  HttpServerResponse.json({ _tag, message }, { status })

const Api = HttpRouter.empty.pipe(
  HttpRouter.post("/chat/:session", chat),
  HttpRouter.catchTags({
    ParseError: refuse(400),
    SessionError: refuse(409),
    LeaseHeld: refuse(423),
    AdapterError: refuse(502)
  }),
  HttpServer.serve()
)

const Stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)

const Assistant = Fake.engine({
  respond: ({ messages }) => {
    const said = messages.filter(({ role }) => role === "user").map(Message.toText)
    return said.at(-1) === "Count the stars"
      ? [Fake.text("One, "), Fake.delay("1 hour"), Fake.text("two"), Fake.finish("stop")]
      : [Fake.text("You said: "), Fake.text(said.join(", ")), Fake.finish("stop")]
  }
})

const App = Layer.provide(Api, [SessionRunner.layer().pipe(Layer.provide(Stores)), Assistant])

// --- a client ---

const post = (path: string, message: string) =>
  HttpClientRequest.post(path).pipe(HttpClientRequest.bodyUnsafeJson({ message }), HttpClient.execute)

const events = (message: string) =>
  HttpClientResponse.stream(post("/chat/ada", message)).pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.filterMap((line) => line.startsWith("data: ") ? Option.some(line.slice("data: ".length)) : Option.none()),
    Stream.mapEffect(Schema.decode(EventJson)),
    Stream.tap((event) => Console.log(`  ${event._tag}${event._tag === "TextDelta" ? ` ${event.delta}` : ""}`))
  )

const client = Effect.gen(function*() {
  yield* Console.log("Ada says hello:")
  yield* Stream.runDrain(events("Hello"))

  yield* Console.log("Ada wants something that takes an hour, and hangs up at the first word:")
  yield* Stream.runDrain(Stream.takeUntil(events("Count the stars"), ({ _tag }) => _tag === "TextDelta"))

  yield* Console.log("Ada is back at once:")
  yield* Stream.runDrain(events("Never mind"))

  const { json, status } = yield* post("/chat/ada", "")
  yield* Console.log(`Ada says nothing: ${status} ${(yield* Schema.decodeUnknown(Refusal)(yield* json))._tag}`)
})

if (argv[2] === "serve") {
  const Server = NodeHttpServer.layer(createServer, { port: 3000 })
  NodeRuntime.runMain(Layer.launch(HttpServer.withLogAddress(App).pipe(Layer.provide(Server))))
} else {
  Effect.runPromise(client.pipe(Effect.provide(App), Effect.provide(NodeHttpServer.layerTest), Effect.scoped))
}
