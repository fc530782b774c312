// What build.mjs puts together for element.js.
declare module "seckill:built" {
  export const css: string;
  /** What the server puts in when it sends the script. */
  export const serverFacts: Record<string, string>;
  export const makeApp: (given: Record<string, string>) => typeof import("./app.js");
}
