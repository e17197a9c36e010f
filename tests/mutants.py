"""Breaks the code on purpose, one law at a time, and demands that the named test fails.

Run it by hand with `make mutants`; `make test` runs it too. Each mutant is put into a copy of the tree.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` stands exactly once in `file`; with `new` in its place `test` must fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


LAW = "tests/engine/test_law.py::"
CONTAINER = "tests/text/test_container.py::"
MUTANTS = (
    Mutant(
        "an anchor counts in the entropy sum",
        "dg_lsp/engine/sampler.py",
        "order = torch.full(current.shape, -torch.inf, device=current.device)",
        "order = torch.full(current.shape, 0.01, device=current.device)",
        "tests/engine/test_sampler.py::test_many_anchors_cost_nothing_of_the_bound",
    ),
    Mutant(
        "anchors count in the mean entropy",
        "dg_lsp/engine/denoise.py",
        "self.per_row = (~canvas.anchored).sum(-1)",
        "self.per_row = torch.full((canvas.rows,), canvas.length)",
        LAW + "test_the_loop_stops_by_itself_where_generate_does",
    ),
    Mutant(
        "one token of the suffix is dropped",
        "dg_lsp/engine/canvas.py",
        "tail = list(seam.suffix[:left]) + [seam.filler] * (left - len(seam.suffix))",
        "tail = list(seam.suffix[1 : left + 1]) + [seam.filler] * (left + 1 - len(seam.suffix))",
        "tests/engine/test_canvas.py::test_the_suffix_is_laid_token_for_token_without_a_hole",
    ),
    Mutant(
        "the temperature is off by one step",
        "dg_lsp/engine/denoise.py",
        "left = torch.tensor(self.steps - step + 1, dtype=torch.int32)",
        "left = torch.tensor(self.steps - step, dtype=torch.int32)",
        LAW + "test_without_anchors_the_loop_equals_generate",
    ),
    Mutant(
        "cancelling is ignored",
        "dg_lsp/engine/denoise.py",
        "        yield replace(\n            state.step(number),",
        "        try:\n            yield None\n        except GeneratorExit:\n            continue\n"
        "        yield replace(\n            state.step(number),",
        "tests/engine/test_denoise.py::test_closing_the_loop_stops_the_network",
    ),
    Mutant(
        "noise falls on anchors",
        "dg_lsp/engine/sampler.py",
        "return torch.where(self.canvas.anchored, self.canvas.tokens, drawn)",
        "return drawn",
        LAW + "test_with_anchors_the_loop_equals_generate_with_one_hot_rows",
    ),
    Mutant(
        "self-conditioning is forgotten",
        "dg_lsp/engine/denoise.py",
        "soft = None if state.soft is None else state.soft[rows]",
        "soft = None",
        LAW + "test_without_anchors_the_loop_equals_generate",
    ),
    Mutant(
        "self-conditioning is zero at the second step",
        "dg_lsp/engine/denoise.py",
        "soft = None if state.soft is None else state.soft[rows]",
        "soft = None if state.soft is None or number == 2 else state.soft[rows]",
        LAW + "test_without_anchors_the_loop_equals_generate",
    ),
    Mutant(
        "when a row leaves the batch the others take over its self-conditioning",
        "dg_lsp/engine/denoise.py",
        "soft = None if state.soft is None else state.soft[rows]",
        "soft = None if state.soft is None else state.soft[: len(rows)]",
        LAW + "test_rows_that_leave_the_batch_change_nothing_for_the_others",
    ),
    Mutant(
        "an anchor's self-conditioning is zero",
        "dg_lsp/engine/denoise.py",
        "soft = (self.anchors if self.soft is None else self.soft).flatten(0, 1).clone()",
        "soft = torch.zeros_like(self.anchors).flatten(0, 1)",
        LAW + "test_with_anchors_the_loop_equals_generate_with_one_hot_rows",
    ),
    Mutant(
        "the window shows one token too many",
        "dg_lsp/engine/cache.py",
        "max(length - self.window + 1, 0)",
        "max(length - self.window, 0)",
        "tests/engine/test_cache.py::test_cuts_and_extensions_past_the_window_change_nothing",
    ),
    Mutant(
        "the window shows one token too few",
        "dg_lsp/engine/cache.py",
        "max(length - self.window + 1, 0)",
        "max(length - self.window + 2, 0)",
        "tests/engine/test_cache.py::test_cuts_and_extensions_past_the_window_change_nothing",
    ),
    Mutant(
        "the common part is taken from the lengths alone",
        "dg_lsp/engine/cache.py",
        "strict=False)) if a != b), None)",
        "strict=False)) if False), None)",
        "tests/engine/test_cache.py::test_only_what_is_new_is_encoded_from_a_chunk_border_on",
    ),
    Mutant(
        "a cache hit is believed without comparing tokens",
        "dg_lsp/engine/cache.py",
        "if cache.tokens == wanted and not",
        "if len(cache.tokens) == len(wanted) and not",
        "tests/engine/test_cache.py::test_a_hit_counts_only_after_comparing_tokens",
    ),
    Mutant(
        "a fill that adds a syntax error is shown",
        "dg_lsp/host/base.py",
        "    if faults:",
        "    if faults and not edit.text:",
        "tests/host/test_base.py::test_a_fill_that_would_add_an_error_is_not_shown",
    ),
    Mutant(
        "an edit begins one byte too early",
        "dg_lsp/text/fills/fit.py",
        "    return Edit(gap.start, gap.end, gap.lead",
        "    return Edit(max(gap.start - 1, 0), gap.end, gap.lead",
        "tests/host/test_base.py::test_no_byte_outside_the_gap_changes_whatever_is_filled",
    ),
    Mutant(
        "an empty answer has no reason",
        "dg_lsp/host/base.py",
        'None, fill.refusal or "the model left the gap empty")',
        'None, "")',
        "tests/host/test_base.py::test_an_empty_fill_keeps_its_reason",
    ),
    Mutant(
        "every request gets the same noise",
        "dg_lsp/engine/sampler.py",
        "manual_seed(seed % 2**63)",
        "manual_seed(0)",
        "tests/engine/test_infill.py::test_the_same_request_gives_the_same_fill_also_from_a_warm_cache",
    ),
    Mutant(
        "all rows start from the same noise",
        "dg_lsp/engine/sampler.py",
        "drawn = torch.randint(self._vocabulary, slots.shape, generator=self._generator, device=slots.device)",
        "row = torch.randint(self._vocabulary, (canvas.length,), generator=self._generator, device=slots.device)\n"
        "        drawn = row[slots % canvas.length]",
        "tests/engine/test_sampler.py::test_rows_of_a_batch_get_noise_of_their_own",
    ),
    Mutant(
        "all slots are drawn at the same point",
        "dg_lsp/engine/sampler.py",
        "            len(probabilities), 1, generator=self._generator",
        "            1, 1, generator=self._generator",
        "tests/engine/test_sampler.py::test_rows_of_a_batch_get_noise_of_their_own",
    ),
    Mutant(
        "closing the stream does not stop the engine",
        "dg_lsp/host/service.py",
        "                work.cancel()\n                await asyncio.gather(work, return_exceptions=True)",
        "                pass",
        "tests/host/test_service.py::test_closing_the_lines_stops_the_engine",
    ),
    Mutant(
        "an error of the engine quotes the text",
        "dg_lsp/host/service.py",
        "met an error of its own ({type(error).__name__})",
        "met an error of its own ({error})",
        "tests/host/test_service.py::test_an_error_of_the_engine_is_the_last_line",
    ),
    Mutant(
        "a recent fill answers for another place",
        "dg_lsp/text/fills/offers.py",
        '[text for text in offer.texts if text.encode("utf-8").startswith(typed)]',
        "list(offer.texts)",
        "tests/text/test_offers.py::test_what_does_not_agree_is_none",
    ),
    Mutant(
        "a stale code action is filled",
        "dg_lsp/server/app.py",
        'if data.get("version") != document.version:',
        'if data.get("version") == "":',
        "tests/server/test_app.py::test_an_action_of_an_older_version_comes_back_unchanged",
    ),
    Mutant(
        "lines end at form feeds",
        "dg_lsp/server/documents.py",
        r'_LINE_END = re.compile(r"\r\n|\n|\r")',
        r'_LINE_END = re.compile(r"\r\n|\n|\r|\f")',
        "tests/server/test_documents.py",
    ),
    Mutant(
        "a flipped byte is not noticed",
        "dg_lsp/engine/load/manifest.py",
        '!= wanted["sha256"]:',
        '== "":',
        "tests/engine/test_checkpoint.py::test_a_flipped_byte_is_named",
    ),
    Mutant(
        "a canvas in training sees the token it begins with",
        "dg_lsp/training/objective.py",
        "before = tokens < starts",
        "before = tokens <= starts",
        "tests/training/test_train.py::test_a_canvas_sees_its_prefix_and_nothing_behind_it",
    ),
    Mutant(
        "the masks of training are truth values again",
        "dg_lsp/training/objective.py",
        "masks[kind] = hidden[:, None, None].expand(-1, 1, slots, -1)",
        "masks[kind] = (hidden == 0)[:, None, None].expand(-1, 1, slots, -1)",
        "tests/training/test_train.py::test_a_canvas_sees_its_prefix_and_nothing_behind_it",
    ),
    Mutant(
        "the corpus may share fifty tokens in a row with what is held out",
        "dg_lsp/training/heldout.py",
        "or overlaps(windows_of(text), held_out.windows)",
        "or False",
        "tests/training/test_train.py::test_fifty_tokens_in_a_row_are_too_many_and_a_licence_is_none",
    ),
    Mutant(
        "the document used last is the first to be dropped",
        "dg_lsp/engine/cache.py",
        "held -= self._caches.popitem(last=False)[1].bytes",
        "held -= self._caches.popitem(last=True)[1].bytes",
        "tests/engine/test_cache.py::test_the_documents_used_least_recently_go_first_and_the_last_one_stays",
    ),
    Mutant(
        "a file's mention of a special token becomes the token",
        "dg_lsp/engine/load/checkpoint.py",
        "tokenizer.encode_special_tokens = True",
        "tokenizer.encode_special_tokens = False",
        "tests/engine/test_frame.py::test_a_file_that_mentions_special_tokens_holds_their_letters",
    ),
    Mutant(
        "the line that a canvas cut is lost",
        "dg_lsp/text/fills/stitch.py",
        'cut = re.sub(r"\\s*\\w*$", "", whole[last:]) if end == last else ""',
        'cut = ""',
        "tests/text/test_stitch.py::test_what_stays_is_what_can_still_come_right",
    ),
    Mutant(
        "what stood before a seam stands twice",
        "dg_lsp/engine/fill/candidates.py",
        'further = go_on(request, before, raw.split("\\ufffd")[0])',
        'further = go_on(request, before, before + raw.split("\\ufffd")[0])',
        "tests/engine/test_stitch.py::test_a_long_body_comes_back_line_for_line",
    ),
    Mutant(
        "a long gap is never taken for one",
        "dg_lsp/engine/fill/infill.py",
        "        lengths += (part.open,)",
        "        lengths += ()",
        "tests/engine/test_infill.py::test_that_the_gap_goes_on_is_an_answer_until_the_fill_is_long_enough",
    ),
    Mutant(
        "finished rows stay in the batch",
        "dg_lsp/engine/denoise.py",
        "left = [row for row, finished in enumerate(state.finished.tolist()) if not finished]",
        "left = [] if bool(state.finished.all()) else left",
        "tests/engine/test_denoise.py::test_rows_that_have_finished_cost_nothing_more_and_change_nothing",
    ),
    Mutant(
        "the loop waits for the device within a step",
        "dg_lsp/engine/denoise.py",
        "rows = torch.tensor(left, device=free.device)",
        "rows = (~state.finished).nonzero().flatten()",
        "tests/engine/test_denoise.py::"
        "test_a_step_never_waits_for_the_device_but_to_see_which_rows_have_finished",
    ),
    Mutant(
        "all lengths are as frequent",
        "dg_lsp/engine/fill/length.py",
        "{n: score + rarity(n, search.usual) for n, score",
        "{n: score for n, score",
        "tests/engine/test_length.py::test_a_length_that_is_rare_for_its_kind_scores_worse_by_so_much",
    ),
    Mutant(
        "an uneven prefix passes for an exact one",
        "dg_lsp/engine/cache.py",
        "common = min(common, cache.even)",
        "common = min(common, len(cache.tokens))",
        "tests/engine/test_cache.py::test_exactness_reaches_back_to_the_first_uneven_chunk",
    ),
    Mutant(
        "the slots of another gap are anchors",
        "dg_lsp/engine/canvas.py",
        "return Canvas(row.clamp(min=0), row != FREE)",
        "return Canvas(row.clamp(min=0), torch.arange(length)[None] >= len(seam.head) + gap)",
        "tests/engine/test_canvas.py::test_a_seam_may_hold_slots_of_other_gaps",
    ),
    Mutant(
        "encoder and decoder get an adapter each",
        "dg_lsp/training/lora.py",
        "    for name, part in list(_adapters(network)):\n        _put(network, _in_encoder(name), part)\n",
        "",
        "tests/training/test_adapted.py::test_an_adapter_changes_attention_and_dense_parts_only_and_for_both_passes",
    ),
    Mutant(
        "a bracket that a fill did not open is no end",
        "dg_lsp/text/fills/container.py",
        "        if depth < 0:",
        "        if depth < -1:",
        CONTAINER + "test_a_fill_is_cut_where_its_container_closes",
    ),
    Mutant(
        "a fill may leave the brackets round its gap",
        "dg_lsp/text/fills/check.py",
        "len(neutral.data) - old[1] == len(filled.data) - new[1]",
        "True",
        CONTAINER + "test_a_fill_that_leaves_its_brackets_is_a_fault_though_it_parses",
    ),
    Mutant(
        "a file's tabs become spaces",
        "dg_lsp/text/fills/fit.py",
        "    if tabs and not spaces:",
        "    if False:",
        CONTAINER + "test_indentation_is_the_files_own",
    ),
    Mutant(
        "a hole between statements is not seen",
        "dg_lsp/text/gaps/kinds.py",
        "    if hole_at(view) is not None:",
        "    if False:",
        "tests/text/test_find.py::test_a_cursor_without_a_wish_means",
    ),
    Mutant(
        "what is typed is replaced unasked",
        "dg_lsp/text/gaps/region_gaps.py",
        "    return replace(gap, start=offset, end=offset if document.data[offset:end].strip() else end)",
        "    return gap",
        "tests/text/test_find.py::test_a_cursor_without_a_wish_means",
    ),
    Mutant(
        "a closer that the file lacks is not brought along",
        "dg_lsp/text/gaps/region_gaps.py",
        '    if first <= slot.end < last and slot.kind != "statement":',
        "    if False:",
        "tests/text/test_languages.py::test_the_gap_at_the_cursor_is_the_right_one",
    ),
    Mutant(
        "two patterns for one body make two records",
        "dg_lsp/text/languages/language.py",
        'found[owner][record[f"{owner}.body"].id] = max(known, record, key=len)',
        'found[owner][record[f"{owner}.body"].id] = record',
        "tests/text/test_languages.py::test_two_patterns_for_one_function_make_one_record_with_its_name",
    ),
    Mutant(
        "a neutral expression is empty",
        "grammars/go/language.toml",
        'expression = "_g_"',
        'expression = ""',
        "tests/text/test_languages.py::test_the_right_gap_with_neutral_text_in_it_parses",
    ),
    Mutant(
        "a change does not move what follows it",
        "dg_lsp/text/documents/changes.py",
        "c.now + moved, c.stop + moved",
        "c.now, c.stop",
        "tests/text/test_changes.py::test_an_offset_stays_between_its_neighbours",
    ),
    Mutant(
        "an older text is kept whether or not it parses",
        "dg_lsp/text/documents/history.py",
        "if best is not None and best.reading.cost == 0:",
        "if best is not None:",
        "tests/text/test_history.py::test_a_text_that_was_opened_is_kept_until_a_better_one_is_known",
    ),
    Mutant(
        "what was begun since the last good text is not looked for",
        "dg_lsp/text/gaps/recall.py",
        "return () if _has_begun(language, document, span, kind) else tuple(kept)",
        "return tuple(kept)",
        "tests/text/test_recall.py::test_in_what_was_begun_since_nothing_is_remembered",
    ),
    Mutant(
        "the bytes of an edit are those of another place",
        "dg_lsp/server/documents.py",
        "offset + between if line >= near else offset - between",
        "offset + between",
        "tests/server/test_documents.py::test_random_edits_equal_the_reference",
    ),
    Mutant(
        "the first imports are kept and not the last",
        "dg_lsp/text/prompts/outline.py",
        "kept |= _fitting(imports[::-1], min(",
        "kept |= _fitting(imports, min(",
        "tests/text/test_outline.py::test_the_last_imports_have_half_of_the_room_and_headers_the_rest",
    ),
    Mutant(
        "what is kept above a cut changes while one types",
        "dg_lsp/text/prompts/prompt.py",
        "outline(language, before[:stop], cut, budget)",
        "outline(language, before, cut, budget)",
        "tests/text/test_outline.py::test_it_stays_while_one_types_below_the_cut_and_differs_for_another_function",
    ),
    Mutant(
        "text in a string counts as clean",
        "dg_lsp/text/syntax/baseline.py",
        "        if (before.string or before.comment) and kind not in",
        "        if False and kind not in",
        "tests/text/test_resume.py::test_what_is_broken_before_the_gap_is_not_the_fills_fault",
    ),
    Mutant(
        "the measurement of gaps counts every gap as right",
        "benchmarks/gaps/cells.py",
        "right = isinstance(gap, Gap) and is_right(",
        "right = isinstance(gap, Gap) or is_right(",
        "tests/benchmarks/test_gaps.py::test_a_cell_counts_what_is_right",
    ),
    Mutant(
        "the measurement of fills takes every file for valid",
        "benchmarks/gaps/shown.py",
        "faulty = not is_valid(case.truth.language, data)",
        "faulty = False",
        "tests/benchmarks/test_gaps.py::test_the_checks_of_a_shown_fill_can_tell",
    ),
    Mutant(
        "a token of a finished canvas is lost when it is mended",
        "dg_lsp/engine/fill/mend.py",
        "(*freed.tail, *seam.suffix)",
        "(*freed.tail[1:], *seam.suffix)",
        "tests/engine/test_mend.py::test_few_tokens_of_many_are_freed_and_the_others_lie_on_the_canvas",
    ),
    Mutant(
        "each round of mending draws the same noise",
        "dg_lsp/engine/fill/settle.py",
        " + _ROUND_SEED * batch.round",
        "",
        "tests/engine/test_mend.py::test_each_round_draws_other_noise",
    ),
    Mutant(
        "a mended fill may lose its end",
        "dg_lsp/engine/fill/candidates.py",
        'lost = "it would end before its end" if batch.round and not kept else ""',
        'lost = ""',
        "tests/engine/test_mend.py::test_what_would_cut_off_its_own_end_is_refused",
    ),
    Mutant(
        "the first reading that fails is where a fill is broken",
        "dg_lsp/text/fills/parse_log.py",
        "yield max(failed) - len(text.before)",
        "yield failed[1] - len(text.before)",
        "tests/text/test_resume.py::test_a_reading_that_fails_while_another_goes_on_is_not_the_place",
    ),
    Mutant(
        "in a text that stays broken only the number of its errors counts",
        "dg_lsp/text/fills/check.py",
        "return room if room.clean else neutral",
        "return neutral",
        "tests/text/test_check.py::test_a_fill_of_a_text_that_stays_broken_must_be_right_by_itself",
    ),
    Mutant(
        "the encoder is not asked which of the candidates it finds likeliest",
        "dg_lsp/engine/fill/candidates.py",
        "return sorted(rated, key=lambda c: (bool(c.fill.refusal), c.fill.score))",
        "return sorted(rated, key=lambda c: bool(c.fill.refusal))",
        "tests/engine/test_candidates.py::test_the_one_that_the_encoder_finds_likeliest_comes_first_among_those_that_can_be_shown",
    ),
    Mutant(
        "what the encoder reads of a candidate ends with it",
        "dg_lsp/engine/fill/candidates.py",
        "return [text + suffix[:behind] for text, suffix in rows], firsts, ends",
        "return [text for text, _ in rows], firsts, ends",
        "tests/engine/test_candidates.py::test_all_are_read_equally_far_into_the_suffix",
    ),
    Mutant(
        "what is missing in a hidden rule of the grammar is not seen",
        "dg_lsp/text/fills/fault.py",
        "if node.is_error or node.is_missing or (node.has_error and not below):",
        "if node.is_error or node.is_missing:",
        "tests/text/test_check.py::test_what_a_hidden_rule_of_the_grammar_misses_is_a_fault",
    ),
    Mutant(
        "what only the grammar takes is shown",
        "dg_lsp/text/fills/check.py",
        "found = _misread(language, filled)",
        "found = ()",
        "tests/text/test_check.py::test_what_only_the_grammar_takes_is_a_fault",
    ),
    Mutant(
        "a body may turn into an object",
        "dg_lsp/text/fills/check.py",
        "found = _misplaced(language, neutral, filled, kind)",
        "found = ()",
        "tests/text/test_check.py::test_a_body_that_reads_like_an_object_is_a_fault",
    ),
    Mutant(
        "a half-written line of Python goes on with the next one",
        "dg_lsp/text/syntax/indented_repair.py",
        'joints = (b"", b",", b" +") if shut else ()',
        'joints = (b"", b",", b" +")',
        "tests/text/test_find.py::test_a_statement_does_not_take_in_the_next_line",
    ),
    Mutant(
        "three dots want an operand",
        "dg_lsp/text/syntax/indented_repair.py",
        "(?<!\\.\\.)\\.|[=+",
        "\\.|[=+",
        "tests/text/test_find.py::test_dots_are_a_whole_body",
    ),
    Mutant(
        "a replayed pass sees what is left of longer prefixes",
        "dg_lsp/engine/replay.py",
        "hidden = torch.arange(seen + length, device=device) >= self.start",
        "hidden = torch.arange(seen + length, device=device) >= seen",
        "tests/engine/test_replay.py::test_replayed_steps_are_those_of_plain_passes",
    ),
    Mutant(
        "a replayed pass goes on behind another fill's prefix",
        "dg_lsp/engine/replay.py",
        "if self._owner is owner:",
        "if self._owner is not None:",
        "tests/engine/test_replay.py::test_two_fills_may_take_turns",
    ),
    Mutant(
        "a recording is made for every prefix",
        "dg_lsp/engine/replay.py",
        "shape = (1 << (rows - 1).bit_length(), length, bucket)",
        "shape = (rows, length, id(behind))",
        "tests/engine/test_replay.py::test_after_the_first_fill_of_a_shape_nothing_is_recorded_again",
    ),
    Mutant(
        "a statement asked for on a blank line replaces what holds it",
        "dg_lsp/text/gaps/regions.py",
        "return [s for s in found if all(at <= s.start for at in opens)]",
        "return found",
        "tests/text/test_find.py::test_a_statement_asked_for_on_a_blank_line_replaces_nothing",
    ),
    Mutant(
        "a statement ends with its first line",
        "dg_lsp/text/fills/fit.py",
        "next((t for t in starts if not _faulty(request, t)), starts[0]) if len(starts) > 1 else starts[0]",
        "starts[0]",
        "tests/text/test_fit.py::test_a_statement_ends_where_it_is_whole",
    ),
    Mutant(
        "a line that goes on below may be ended in any way",
        "dg_lsp/text/fills/fault.py",
        "    yield line, _below(data, line, neutral.end)\n",
        "",
        "tests/text/test_check.py::test_a_line_that_has_only_begun_must_be_ended_right",
    ),
    Mutant(
        "a function is taken for a statement of several lines",
        "dg_lsp/text/fills/fault.py",
        "if indentation(data, start) < columns and not _ENDED.search(data, start, line):",
        "if indentation(data, start) < columns:",
        "tests/text/test_check.py::test_what_is_broken_below_a_line_is_no_fault_of_the_fill",
    ),
    Mutant(
        "a line that has only begun may be ended in any way",
        "dg_lsp/text/fills/fault.py",
        "[] if blamed else _errors(neutral.tree.root_node)",
        "_errors(neutral.tree.root_node)",
        "tests/text/test_check.py::test_a_line_that_has_only_begun_must_be_ended_right",
    ),
    Mutant(
        "a fill is blamed for what was broken on its line before",
        "dg_lsp/text/fills/fault.py",
        "return not any(-len(typed) <= at",
        "return not any(False and -len(typed) <= at",
        "tests/text/test_check.py::test_what_is_broken_on_a_line_before_its_gap_is_no_fault_of_the_fill",
    ),
    Mutant(
        "offsets behind what was cut out of a long class are not moved",
        "dg_lsp/text/syntax/repair.py",
        "sum(max(length, place - offset) for place, length in put if place < offset)",
        "sum(length for place, length in put if place < offset and length > 0)",
        "tests/text/test_indented.py::test_a_gap_in_a_long_broken_class_is_where_it_is_when_all_of_it_is_read",
    ),
    Mutant(
        "a long class ends where what is left of it ends",
        "dg_lsp/text/syntax/indented_focus.py",
        "cuts = ((first.start(), first.start() - begin), (end, end - name))",
        "cuts = ((first.start(), first.start() - begin),)",
        "tests/text/test_indented.py::test_of_a_long_class_only_the_members_round_the_place_are_left",
    ),
    Mutant(
        "an indented decorator belongs to the member above it",
        "dg_lsp/text/syntax/indented_focus.py",
        "found += [] if decorated else [member.start()]",
        "found += [member.start()] if member[2] is None else []",
        "tests/text/test_indented.py::test_of_a_long_class_only_the_members_round_the_place_are_left",
    ),
    Mutant(
        "a header that a fill writes gets no body",
        "dg_lsp/text/fills/ending.py",
        "+ below + language.indent + body",
        "+ below",
        "tests/text/test_fit.py::test_a_line_that_leaves_something_open_is_ended",
    ),
    Mutant(
        "a block that stands below a header is not seen",
        "dg_lsp/text/fills/fit.py",
        "if not ended or not _faulty(request, text):",
        "if not ended:",
        "tests/text/test_fit.py::test_a_line_that_leaves_something_open_is_ended",
    ),
    Mutant(
        "several fills are put in from the first on, at offsets that are no longer true",
        "dg_lsp/host/base.py",
        "in reversed(list(zip(gap.parts, (fill.text, *fill.further), strict=True))):",
        "in list(zip(gap.parts, (fill.text, *fill.further), strict=True)):",
        "tests/host/test_base.py::test_several_gaps_become_one_edit_and_those_without_a_fill_stay",
    ),
    Mutant(
        "a gap that got nothing on the shared canvas is left so",
        "dg_lsp/engine/fill/several.py",
        "if not fill.refusal or clock.is_over():",
        "if fill.refusal or clock.is_over():",
        "tests/engine/test_several.py::test_a_gap_that_got_nothing_is_filled_alone_among_the_fills_of_the_others",
    ),
)


def survives(mutant: Mutant) -> str:
    """Empty when the mutant is killed as it should be, else what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(
            ROOT,
            copy,
            ignore=shutil.ignore_patterns(
                ".git", ".venv*", ".editors", "runs", "dist", ".*_cache", "__pycache__"
            ),
        )
        file = copy / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return f"its text stands {text.count(mutant.old)} times in {mutant.file}"
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutant.test]
        done = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        # 1 is "tests ran and some failed"; a test that is not found or cannot be imported kills nothing.
        if done.returncode != 1 or "error" in done.stdout.splitlines()[-1]:
            return f"{mutant.test} ended with {done.returncode}:\n{done.stdout[-600:]}{done.stderr[-300:]}"
        return ""


def timed(mutant: Mutant) -> tuple[str, float]:
    """What `survives` says, and the seconds that it took."""
    start = time.perf_counter()
    return survives(mutant), time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="run mutants whose name holds this text")
    chosen = [m for m in MUTANTS if parser.parse_args().only in m.name]
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, (wrong, seconds) in zip(chosen, pool.map(timed, chosen), strict=True):
            failed += bool(wrong)
            print(
                f"{'SURVIVED' if wrong else 'killed  '} {seconds:5.1f} s  {mutant.name}  {wrong}", flush=True
            )
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    raise SystemExit(main())
