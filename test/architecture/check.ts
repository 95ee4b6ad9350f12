import { checkArrows, checkEnvironment, checkPaths, checkRelativeImports, checkVendors } from './arrows.ts';
import { checkCircles } from './circles.ts';
import { checkClocks } from './clocks.ts';
import { checkComposition } from './composition.ts';
import { checkManifests, checkServices, checkTopLevel } from './layout.ts';
import { checkFileNames, checkVerbs } from './names.ts';
import { checkSizes } from './sizes.ts';
import { checkPacking, checkSpreads } from './spreads.ts';
import { parseSources } from './syntax.ts';
import type { Breach, Rule, Tree } from './tree.ts';
import { checkHooks, checkLock, checkTests, checkWords } from './words.ts';

const RULES: readonly Rule[] = [
  checkArrows,
  checkRelativeImports,
  checkPaths,
  checkCircles,
  checkComposition,
  checkVendors,
  checkEnvironment,
  checkSizes,
  checkFileNames,
  checkVerbs,
  checkClocks,
  checkSpreads,
  checkPacking,
  checkTopLevel,
  checkServices,
  checkManifests,
  checkWords,
  checkLock,
  checkTests,
  checkHooks,
];

/** Paths that may break a rule. It is empty and must stay so: change the rule or the code instead. */
export const EXCEPTIONS: readonly { rule: string; path: string }[] = [];

/**
 * Checks a tree against the rules of this folder.
 * @throws Error when a code file cannot be parsed
 */
export function findBreaches(tree: Tree): Breach[] {
  const sources = parseSources(tree);
  const breaches = RULES.flatMap((rule) => rule(sources));
  return breaches.filter(({ rule, path }) => !EXCEPTIONS.some((other) => other.rule === rule && other.path === path));
}

/** A breach in one line: where, what, and how to mend it. */
export function toLine({ rule, path, found, mend }: Breach): string {
  return `${path}: ${found}. To mend: ${mend}. [${rule}]`;
}
