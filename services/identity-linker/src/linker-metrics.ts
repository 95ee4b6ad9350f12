import type { Applied } from '@playline/people';
import type { Metrics } from '@playline/runtime';

export interface LinkerMetrics {
  /** Counts the results of a published batch. Batches that are repeated count again. */
  batch(applied: readonly Applied[], deadLetters: number): void;
}

/** Reports at every scrape the facts that wait in the parked place, in the partitions of this process. */
export function watchWaiting(metrics: Metrics, count: () => number): void {
  metrics.collectedGauge('identity_facts_waiting', 'Link facts that wait for an erasure which takes long', {
    collect: (gauge) => gauge.set(count()),
  });
}

export function createLinkerMetrics(metrics: Metrics): LinkerMetrics {
  const facts = metrics.counter('identity_facts_total', 'Link facts by what became of them', ['result']);
  const decisions = metrics.counter('identity_decisions_total', 'Decisions about links', ['link', 'outcome', 'reason']);
  return {
    batch(applied, deadLetters) {
      if (deadLetters > 0) facts.inc({ result: 'dead_letter' }, deadLetters);
      // Counted here first, because a look-up of labels for every decision costs more than the count.
      const [results, outcomes] = [new Map<string, number>(), new Map<string, number>()];
      for (const one of applied) {
        countOne(results, one.kind);
        if (one.kind !== 'decided') continue;
        for (const { link, outcome, reason } of one.decisions) countOne(outcomes, `${link} ${outcome} ${reason}`);
      }
      for (const [result, count] of results) facts.inc({ result }, count);
      for (const [labels, count] of outcomes) {
        const [link, outcome, reason] = labels.split(' ');
        decisions.inc({ link: link!, outcome: outcome!, reason: reason! }, count);
      }
    },
  };
}

function countOne(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
