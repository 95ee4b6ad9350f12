/**
 * Statements that show which step an erasure has reached, in order. An eraser that starts again begins at its fences.
 * The first line of a request holds such a statement.
 */
export const MOMENTS = {
  'resolved, not noted': /INSERT INTO erasure_progress/,
  'noted, not fenced': /INSERT INTO erasure_fences/,
  'forgotten in Redis': /INSERT INTO erasure_progress/,
  'about to sweep': /INSERT INTO erasure_targets/,
  'swept, without a receipt': /INSERT INTO erasure_receipts/,
} as const;
