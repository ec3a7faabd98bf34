#!/usr/bin/env node
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Cli from "./Cli.ts"

NodeRuntime.runMain(Effect.provide(Cli.run(process.argv), NodeContext.layer), {
  disableErrorReporting: true,
  // It writes into the middle of whatever is drawn.
  disablePrettyLogger: true,
  teardown: Cli.teardown
})
