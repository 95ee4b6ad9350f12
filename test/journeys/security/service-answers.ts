import { readFileSync } from 'node:fs';
import type { ServiceProcess } from '../../faults/world/service-process.ts';

/** The answer of `/readyz`. */
export interface Readiness {
  ready: boolean;
  reasons?: Record<string, string>;
}

export async function readinessOf(service: ServiceProcess): Promise<Readiness> {
  const answer = await fetch(`${service.adminUrl}/readyz`, { signal: AbortSignal.timeout(3_000) });
  return (await answer.json()) as Readiness;
}

/** Log lines with a given sentence, and everything that the process shows: log, readiness and metrics. */
export async function shownBy(service: ServiceProcess): Promise<{ lines: string[]; all: string }> {
  const log = readFileSync(service.logFile, 'utf8');
  const answers = ['/metrics', '/readyz'].map(async (path) => (await fetch(service.adminUrl + path)).text());
  return {
    lines: log.split('\n').filter((line) => line.includes('cannot be used')),
    all: log + (await Promise.all(answers)).join(),
  };
}
