export * from "@allm/core"
export * as Fake from "./Fake.ts"
