/** The exit codes. `infra/local/README.md` explains them. */
export declare const EXIT: {
  readonly ok: 0;
  readonly failed: 1;
  readonly usage: 2;
  readonly unreachable: 3;
  readonly emptied: 4;
};

type Refusal = { code: number; text: string } | null;
export declare function refusalOf(argv: readonly string[]): Refusal;
export declare function isReadOnly(argv: readonly string[]): boolean;
