/** A column with the key of another person in somebody's row, and the texts that say the same as the key. */
export interface CarriedKey {
  /** Column of the key; blanked to zero bytes. */
  readonly key: string;
  /** Columns blanked to the empty text with it. */
  readonly texts: readonly string[];
}

/** How rows of a table are found by the keys of erased people. */
export interface Sweep {
  readonly by: 'sweep';
  /** Key columns that make a row the erased person's own, or a statement about that person: the row is deleted. */
  readonly own: readonly string[];
  /**
   * Key columns that name the erased person in somebody else's row: only they are blanked. None is part of the sorting
   * key.
   */
  readonly carried: readonly CarriedKey[];
  /** Times of a row. It is erased when the earliest of them is not later than the cut-off: the rule of fences. */
  readonly times: readonly string[];
  /** Rows with one of these values in this column are about nobody, and stay. */
  readonly kept?: { readonly column: string; readonly values: readonly string[] };
}

/** A table derived from `events`: its rows are deleted by identity, and derived again from the events that stay. */
export interface Derivation {
  readonly by: 'derived';
  /** The parameterised view, of `since` and `until`, that says what the table has to hold for the events of a span. */
  readonly view: string;
  /**
   * By what its rows are compared with events; the first two are `environment_id` and `identity_key`. Without `test`: copies
   * of one message may differ in it, and which of them a merge has left says nothing of a row.
   */
  readonly keys: readonly string[];
  /** What else a row says, as expressions that fold the rows of one key which no merge has folded yet. */
  readonly values: readonly string[];
}

/** How data about a person leaves a place. */
export type Clearing =
  | Sweep
  | Derivation
  /** Deleted by key, by the scripts that own the layout. */
  | { readonly by: 'script'; readonly script: string }
  /** Disappears by itself within this time. */
  | { readonly by: 'ttl'; readonly windowMs: number; readonly reason: string }
  /** Is kept on purpose. */
  | { readonly by: 'kept'; readonly reason: string }
  | { readonly by: 'no personal data'; readonly reason: string };

/** A topic of Kafka, by its name without a prefix, or a family of Redis keys as `infra/redis/README.md` writes it. */
export interface Place {
  readonly name: string;
  readonly clearing: Clearing;
}

/** A table of ClickHouse. */
export interface TablePlace extends Place {
  /**
   * Columns that somebody has looked at, each with what it needs. Of a swept table those that look like identities and
   * are not named by the sweep, as its other columns go with the row; of any other table all columns.
   */
  readonly columns: Readonly<Record<string, string>>;
  /** Columns that operators may add, by the beginning of their names; each is treated alike. */
  readonly prefixes?: Readonly<Record<string, string>>;
}

export interface DerivedTable extends TablePlace {
  readonly clearing: Derivation;
}

export interface SweptTable extends TablePlace {
  readonly clearing: Sweep;
}
