import type { Applied } from '@playline/identity';
import type { Metrics } from '@playline/runtime';

export interface LinkerMetrics {
  /** Counts what became of a batch, once it is published. Batches that come again count again. */
  batch(applied: readonly Applied[], deadLetters: number): void;
}

export function createLinkerMetrics(metrics: Metrics): LinkerMetrics {
  const facts = metrics.counter('identity_facts_total', 'Link facts by what became of them', ['result']);
  const decisions = metrics.counter('identity_decisions_total', 'Decisions about links', ['link', 'outcome', 'reason']);
  return {
    batch(applied, deadLetters) {
      if (deadLetters > 0) facts.inc({ result: 'dead_letter' }, deadLetters);
      for (const one of applied) {
        facts.inc({ result: one.kind });
        if (one.kind !== 'decided') continue;
        for (const { link, outcome, reason } of one.decisions) decisions.inc({ link, outcome, reason });
      }
    },
  };
}
