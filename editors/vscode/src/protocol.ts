// The messages of the server beyond the language server protocol; docs/clients.md describes them.
import type { InlineCompletionItem } from "vscode";
import type { Range, WorkspaceEdit } from "vscode-languageclient/node";

export type State = "idle" | "starting" | "loading" | "ready" | "busy" | "slow" | "off" | "failed";

/** The notification and the answer to the request `dg-lsp/status`. */
export interface Status {
  state: State;
  why?: string;
  done: number;
  checkpoint: string;
  device: string;
  milliseconds: number;
  steps: number;
  queue: number;
  version?: string;
  last?: Last | null;
  /** More is coming below the ghost text that is shown. */
  growing?: boolean;
  /** Which model writes ghost text and why, if another one fills on request; else "". */
  choice?: string;
  /** How the user has used ghost text on this machine; "" before anything was counted. */
  use?: string;
}

/** The result of the last request for ghost text or a fill. */
export interface Last {
  uri: string;
  offered: boolean;
  why: string;
  milliseconds: number;
  /** The chance that the fill is right, and its source; "" where nobody has estimated it. */
  note?: string;
}

/** A stretch of the canvas: its text, whether it is an anchor, whether the sampler has accepted it, its entropy in nats. */
export type Run = [text: string, anchored: boolean, accepted: boolean, entropy: number];

/** The notification `dg-lsp/draft`. */
export interface Draft {
  uri: string;
  version: number | null;
  step: number;
  range: Range;
  runs: Run[];
}

/**
 * A bracket or string of an item of ghost text, in UTF-16 code units: it is open after the first of the three, and its closer
 * is between the two others.
 */
export type Pair = [open: number, close: number, end: number];

/** An item of ghost text, with its pairs. */
export type GhostItem = InlineCompletionItem & { pairs: Pair[] };

/** The edit in the answer to the request `dg-lsp/nextEdit`. */
export interface NextEdit {
  id: string;
  uri: string;
  version: number;
  range: Range;
  newText: string;
  label: string;
}

/** A model in the answer to the request `dg-lsp/models`. */
export interface Model {
  name: string;
  bytes: number;
  memoryBytes: number;
  /** Measured on this machine. */
  secondsPerLine: number | null;
  can: string[];
  state: "in use" | "fetched" | "not fetched" | "too large";
  note: string | null;
}

/** The answer to the request `dg-lsp/models`. better: the name of a model that this machine can run. */
export interface Models {
  models: Model[];
  better: string | null;
}

/** The arguments of the command `dg-lsp.fill`, as in a code action. */
export interface Target {
  uri: string;
  version: number;
}

/** The result of the command `dg-lsp.fill`. */
export interface FillResult {
  applied: boolean;
  edit: WorkspaceEdit | null;
  why: string;
  /** The reason why the edit waits until a person has seen it; empty if it does not. */
  confirm?: string;
}

/** The result of the command `dg-lsp.fillAll`. */
export interface FillAllResult {
  applied: boolean;
  edit: WorkspaceEdit | null;
  filled: string[];
  left: [name: string, why: string][];
  confirm?: string;
}
