"""Breaks the code on purpose, one clause of a law of DESIGN at a time, and demands that the named test fails.

`make mutants` runs it. Each mutant is put into a copy of the tree; a test that runs into its time limit has failed. The
processes of the tests are forked from one that has imported the libraries, which takes as long as many a test.
"""

import argparse
import io
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
import tokenize
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 600  # seconds for one test; several times what the slowest takes on a busy machine
PATIENCE = 20  # seconds that a test waits for what a mutant has broken
PROCESSES = multiprocessing.get_context("forkserver")
DIFFUSION = "transformers.models.diffusion_gemma"
LIBRARIES = ["torch", f"{DIFFUSION}.modeling_diffusion_gemma", f"{DIFFUSION}.generation_diffusion_gemma"]
LIBRARIES += [
    "transformers.models.llama.modeling_llama",
    "lsprotocol.types",
    "pygls.lsp.server",
    "httpx2",
    "pytest",
]


@dataclass(frozen=True, slots=True)
class Mutant:
    """The code `old` is in `file` once; with `new` in its place a clause of `law` is broken, and `test` must fail.

    How the code is laid out does not matter: see `places_of`.
    """

    law: int
    name: str
    file: str
    old: str
    new: str
    test: str


LAW = "tests/model/test_law.py::"
BUDGET = "tests/test_budget.py::"
GUARD = "tests/guard/test_guard.py::"
SCANNERS = "tests/source/test_scanners.py::"
HOSTILE = "tests/test_hostile.py::"
PRIVACY = "tests/server/test_privacy.py::"
PROTECTION = "tests/server/test_protection.py::"
GROWTH = "tests/filling/test_growth.py::"
MUTANTS = (
    Mutant(
        16,
        "text that is shown is replaced while it grows",
        "dg_lsp/filling/growth.py",
        "if not item or below == fill.text:",
        "if not item:",
        GROWTH + "test_an_answer_that_does_not_begin_with_the_shown_text_is_not_shown",
    ),
    Mutant(
        16,
        "an accepted text ends what is written below it",
        "dg_lsp/server/ahead.py",
        "self.shown.startswith(typed)",
        "False",
        "tests/server/test_growth.py::test_an_accepted_line_goes_on_with_the_lines_below_it",
    ),
    Mutant(
        5,
        "a fill may end the code around it in a file of another language",
        "dg_lsp/guard/check.py",
        "return any(ends.search(lines) for ends in document.ends)",
        "return not lines",
        "tests/source/test_injections.py::test_no_fill_ends_the_code_around_it",
    ),
    Mutant(
        5,
        "an item below shown text is not checked",
        "dg_lsp/filling/growth.py",
        "if outcome.edit is None:",
        "if outcome.edit is None and (outcome := replace(outcome, edit=Edit(at, at, below))) is None:",
        GROWTH + "test_an_item_that_does_harm_is_not_shown",
    ),
    Mutant(
        1,
        "noise falls on anchors",
        "dg_lsp/model/sampler.py",
        "return torch.where(self.canvas.anchored, self.canvas.tokens, drawn)",
        "return drawn",
        LAW + "test_with_anchors_the_loop_equals_generate_with_one_hot_rows",
    ),
    Mutant(
        1,
        "a start falls on anchors",
        "dg_lsp/model/sampler.py",
        "torch.where((self.start == FREE) | self.canvas.anchored, drawn, self.start)",
        "torch.where(self.start == FREE, drawn, self.start)",
        "tests/model/test_sampler.py::test_the_first_canvas_holds_the_start_in_free_slots_and_later_noise_does_not",
    ),
    Mutant(
        1,
        "one token of the suffix is dropped",
        "dg_lsp/model/canvas.py",
        "tail = list(seam.suffix[:left]) + [seam.filler] * (left - len(seam.suffix))",
        "tail = list(seam.suffix[1 : left + 1]) + [seam.filler] * (left + 1 - len(seam.suffix))",
        "tests/model/test_canvas.py::test_the_suffix_is_laid_token_for_token_without_a_hole",
    ),
    Mutant(
        1,
        "an anchor counts in the entropy sum",
        "dg_lsp/model/sampler.py",
        "order = torch.full(current.shape, -torch.inf, device=current.device)",
        "order = torch.full(current.shape, 0.01, device=current.device)",
        "tests/model/test_sampler.py::test_many_anchors_cost_nothing_of_the_bound",
    ),
    Mutant(
        1,
        "anchors count in the mean entropy",
        "dg_lsp/model/denoise.py",
        "self.per_row = (~canvas.anchored).sum(-1)",
        "self.per_row = torch.full((canvas.rows,), canvas.length)",
        LAW + "test_the_loop_stops_by_itself_where_generate_does",
    ),
    Mutant(
        1,
        "an anchor's self-conditioning is zero",
        "dg_lsp/model/denoise.py",
        "soft = (self.anchors if self.soft is None else self.soft).flatten(0, 1).clone()",
        "soft = torch.zeros_like(self.anchors).flatten(0, 1)",
        LAW + "test_with_anchors_the_loop_equals_generate_with_one_hot_rows",
    ),
    Mutant(
        2,
        "the temperature is off by one step",
        "dg_lsp/model/step.py",
        "left = torch.tensor(self.steps - step + 1, dtype=torch.int32)",
        "left = torch.tensor(self.steps - step, dtype=torch.int32)",
        LAW + "test_without_anchors_the_loop_equals_generate",
    ),
    Mutant(
        2,
        "self-conditioning is zero at the second step",
        "dg_lsp/model/denoise.py",
        "soft = None if state.soft is None else state.soft[rows]",
        "soft = None if state.soft is None or number == 2 else state.soft[rows]",
        LAW + "test_without_anchors_the_loop_equals_generate",
    ),
    Mutant(
        3,
        "a cache hit is believed without comparing tokens",
        "dg_lsp/model/cache.py",
        "if cache.tokens == wanted and not",
        "if len(cache.tokens) == len(wanted) and not",
        "tests/model/test_cache.py::test_a_hit_counts_only_after_comparing_tokens",
    ),
    Mutant(
        3,
        "the window shows one token too many",
        "dg_lsp/model/cache.py",
        "max(length - self.window + 1, 0)",
        "max(length - self.window, 0)",
        "tests/model/test_cache.py::test_cuts_and_extensions_past_the_window_change_nothing",
    ),
    Mutant(
        4,
        "a prefix that was encoded in uneven chunks passes for an exact one",
        "dg_lsp/model/cache.py",
        "common = min(common, cache.aligned)",
        "common = min(common, len(cache.tokens))",
        "tests/model/test_cache.py::test_exactness_reaches_back_to_the_first_uneven_chunk",
    ),
    Mutant(
        4,
        "measured costs plan a fill that has no deadline",
        "dg_lsp/model/plan.py",
        "if model is None or model.costs is None or request.deadline is None:",
        "request = replace(request, deadline=request.deadline or 2.0)\n    if model is None or model.costs is None:",
        "tests/model/test_plan.py::test_where_nobody_waits_the_plan_is_that_of_the_effort",
    ),
    Mutant(
        4,
        "a bot's seed is forgotten",
        "dg_lsp/server/handlers/target.py",
        'for name in ("seed", "effort", "deadline") if name in target',
        'for name in ("effort", "deadline") if name in target',
        "tests/server/test_app.py::test_the_same_seed_gives_the_same_result",
    ),
    Mutant(
        5,
        "a statement is shown where the language has none",
        "dg_lsp/source/misplaced.py",
        "return [node for node, name in found if name not in known] if is_file else []",
        "return []",
        "tests/source/test_misplaced.py::test_a_statement_is_refused_where_the_language_has_none",
    ),
    Mutant(
        5,
        "a loop around a function is a room for what is in it",
        "dg_lsp/source/misplaced.py",
        'if k in ("wall", f"room.{name}")), "wall") == "wall"',
        'if k == f"room.{name}"), "wall") == "wall"',
        "tests/source/test_misplaced.py::test_a_statement_is_refused_where_the_language_has_none",
    ),
    Mutant(
        5,
        "a next edit may break the file",
        "dg_lsp/edits/next_edit.py",
        "if cost_of(new) > cost_of(tree) and not _is_sound_alone(source_of(document), edit):",
        "if False:",
        "tests/edits/test_next_edit.py::test_an_edit_that_breaks_the_file_is_not_sound",
    ),
    Mutant(
        5,
        "an edit begins one byte too early",
        "dg_lsp/guard/fit.py",
        "    return Edit(gap.start, gap.end, gap.insert_before",
        "    return Edit(max(gap.start - 1, 0), gap.end, gap.insert_before",
        "tests/filling/test_fill.py::test_no_byte_outside_the_gap_changes_whatever_is_filled",
    ),
    Mutant(
        5,
        "the first ending is taken, whatever is wrong with it",
        "dg_lsp/guard/fit.py",
        "next((one for one in tried if not faults_of(request, one)), text)",
        "next(tried, text)",
        "tests/guard/test_endings.py::test_a_text_gets_the_shortest_ending_that_leaves_no_fault",
    ),
    Mutant(
        5,
        "a fill that does harm is shown",
        "dg_lsp/filling/fill.py",
        "good = [edit for edit, refusal in refusals.items() if not refusal]",
        "good = list(refusals)",
        "tests/filling/test_fill.py::test_a_fill_that_would_add_an_error_is_not_shown",
    ),
    Mutant(
        5,
        "what only Python itself refuses is taken",
        "dg_lsp/guard/baseline.py",
        '        if error.lineno == 1 and "future feature" in error.msg:',
        "        if error.lineno:",
        GUARD + "test_what_only_python_itself_refuses_is_refused",
    ),
    Mutant(
        5,
        "brackets and quotes after the gap may pair otherwise",
        "dg_lsp/guard/compare.py",
        "    return sorted(mark for mark in counted if mark[1] < REACH)",
        "    return []",
        GUARD + "test_the_text_after_the_gap_is_read_as_before",
    ),
    Mutant(
        5,
        "a bracket is closed twice",
        "dg_lsp/guard/room.py",
        "    return len(kept) if len(kept) < len(fill) else None",
        "    return None",
        "tests/guard/test_balance.py::test_a_bracket_that_is_closed_twice_is_a_fault",
    ),
    Mutant(
        5,
        "an offer ends blocks that earlier lines have begun",
        "dg_lsp/gaps/parts.py",
        "    return replace(gap, insert_after=text[: closers[opened]].rstrip().decode())",
        "    return gap",
        "tests/guard/test_closed.py::test_an_offer_ends_the_block_of_its_own_line",
    ),
    Mutant(
        5,
        "a text that leaves a bracket open gets no ending",
        "dg_lsp/guard/fit.py",
        "    if is_part and (faults_of(request, text) or (site.closers and leaves_open(site, text))):",
        "    if False:",
        "tests/guard/test_closed.py::test_half_a_statement_gets_its_brackets",
    ),
    Mutant(
        5,
        "a gap whose bracket nothing closes ends before what follows the bracket",
        "dg_lsp/gaps/parts.py",
        '    return replace(gap, kind="rest_of_line") if is_rest else gap',
        "    return gap",
        "tests/filling/test_fill.py::test_a_gap_reaches_to_the_end_of_a_line_that_has_left_a_bracket_open",
    ),
    Mutant(
        5,
        "a fill ends blocks that earlier lines have begun",
        "dg_lsp/guard/fit.py",
        "    return closers[own] if is_open and own < len(closers) else None",
        "    return None",
        "tests/guard/test_fit.py::test_a_line_ends_before_it_closes_a_block_that_lines_above_have_opened",
    ),
    Mutant(
        5,
        "a fill has to close the blocks of earlier lines",
        "dg_lsp/guard/baseline.py",
        "    return text[:end], text[end:]",
        '    return text, b""',
        "tests/guard/test_endings.py::test_a_text_closes_no_block_of_lines_above_that_nothing_closes",
    ),
    Mutant(
        5,
        "the header of a method ends as a statement",
        "dg_lsp/source/lines.py",
        "    return _CALLED.match(header) is not None and not _BODILESS.search(header)",
        "    return False",
        "tests/guard/test_endings.py::test_a_text_gets_the_shortest_ending_that_leaves_no_fault",
    ),
    Mutant(
        5,
        "a fill may break a directive",
        "dg_lsp/guard/check.py",
        "if flaw := flaw_of_directives(site.language, site.before, fill, site.after):",
        'if flaw := "":',
        "tests/source/test_directives.py::test_a_directive_stays_one",
    ),
    Mutant(
        5,
        "a fill may leave open what no tree can tell",
        "dg_lsp/guard/check.py",
        "opened = room.left_open(site, fill) if blind else ()",
        "opened = room.left_open(site, fill) if not blind else ()",
        "tests/guard/test_wild.py::test_good_fills_are_shown_as_in_the_clean_twin_and_bad_ones_never",
    ),
    Mutant(
        5,
        "where no tree can tell, anything is a statement",
        "dg_lsp/guard/room.py",
        "        for room in _rooms(site, header, line, below, closed)\n    )",
        "        for room in _rooms(site, header, line, below, closed)\n        if False\n    )",
        "tests/guard/test_wild.py::test_good_fills_are_shown_as_in_the_clean_twin_and_bad_ones_never",
    ),
    Mutant(
        5,
        "macros are read as they stand",
        "dg_lsp/source/macros.py",
        "    if not macros.kinds:",
        "    if macros.kinds:",
        "tests/source/test_macros.py::test_a_macro_is_read_as_blanks_of_its_length",
    ),
    Mutant(
        5,
        "a fill may end what holds its gap",
        "dg_lsp/guard/compare.py",
        "    if lost is None:",
        "    if lost is not held:",
        GUARD + "test_what_follows_stays_where_it_belongs",
    ),
    Mutant(
        5,
        "a fill may leave the brackets of its list",
        "dg_lsp/guard/compare.py",
        "if site.kind in LISTS and (brackets := container_of(text)):",
        "if site.kind not in LISTS and (brackets := container_of(text)):",
        "tests/guard/test_compare.py::test_a_fault_has_its_place",
    ),
    Mutant(
        5,
        "a text may take in the statement on the next line",
        "dg_lsp/guard/mixed.py",
        "    leaf = _next_leaf(old) if _begins_statement(new) else None",
        "    leaf = None",
        "tests/guard/test_mixed.py::test_a_fill_does_not_take_in_the_statement_on_the_next_line",
    ),
    Mutant(
        5,
        "a text may continue the statement above it",
        "dg_lsp/guard/mixed.py",
        "begun[:1] not in _JOINS or not _begins_statement(new):",
        "begun:",
        "tests/guard/test_mixed.py::test_a_fill_does_not_continue_the_statement_above",
    ),
    Mutant(
        5,
        "a name is declared again in its block",
        "dg_lsp/source/names.py",
        "        and {name.text for name in own} <= _declared_beside(language, node)",
        "        and not own",
        "tests/source/test_declared.py::test_a_name_is_not_declared_again_in_its_block",
    ),
    Mutant(
        5,
        "the compiler of Python is not asked",
        "dg_lsp/guard/harm.py",
        '    refused = not_compiled(new.data) if parsed_only else ""',
        '    refused = ""',
        "tests/guard/test_loose.py::test_what_no_parser_reads_is_refused",
    ),
    Mutant(
        5,
        "an object that was cut is closed",
        "dg_lsp/guard/endings.py",
        "    if state.string or state.comment or is_value or (own and",
        "    if state.string or state.comment or (own and",
        "tests/guard/test_below.py::test_blocks_are_closed_on_lines_of_their_own",
    ),
    Mutant(
        5,
        "a body may end before its fill",
        "dg_lsp/guard/compare.py",
        "is_left = stop < last or not",
        "is_left = not",
        "tests/guard/test_compare.py::test_a_fault_has_its_place",
    ),
    Mutant(
        5,
        "a line that nobody asked for may end a block",
        "dg_lsp/guard/compare.py",
        "    if site.may_end_blocks:",
        "    if site.kind:",
        "tests/guard/test_compare.py::test_only_a_line_that_was_asked_for_may_end_a_block",
    ),
    Mutant(
        5,
        "a comment in a stub goes with it",
        "dg_lsp/guard/harm.py",
        "left = _blanked(old, [*stubs, *markers])",
        "left = _blanked(old, [*stubs, *comments])",
        GUARD + "test_typed_text_stays",
    ),
    Mutant(
        5,
        "the names of a style's tokens in a file are its tokens",
        "dg_lsp/model/checkpoint.py",
        "tokenizer.add_special_tokens(list(style.names(tokenizer) or ()))",
        "pass",
        "tests/model/test_fim.py::test_special_tokens_in_a_file_are_text_and_none_comes_out",
    ),
    Mutant(
        5,
        "a text that goes on over the end of its gap is kept whole",
        "dg_lsp/model/sources/lines.py",
        "whole = list(model.ends or (join.end if not join.after else ()))",
        "whole = list(join.end if not join.after else ())[:0]",
        "tests/model/test_fim.py::test_a_texts_likelihood_is_that_of_its_tokens_and_of_its_end",
    ),
    Mutant(
        5,
        "half a character is shown",
        "dg_lsp/model/batch.py",
        'if "\\ufffd" in text:',
        'if text == "":',
        "tests/model/test_denoised.py::test_special_tokens_and_unfinished_characters_are_refused",
    ),
    Mutant(
        6,
        "work that ended in the moment in which it was overtaken is answered with its old text",
        "dg_lsp/server/session.py",
        "        if not kept:",
        "        if False:",
        "tests/server/test_ghost.py::test_work_that_ends_in_the_moment_in_which_it_is_overtaken_has_no_result",
    ),
    Mutant(
        6,
        "the reply to a cancel waits for the handler",
        "dg_lsp/server/rpc/conversation.py",
        "            self._fail(live, *_CANCELLED)\n            live.task.cancel()",
        "            live.task.cancel()",
        "tests/server/test_protocol.py::test_cancelling_is_answered_at_once_whatever_the_handler_does",
    ),
    Mutant(
        6,
        "closing the stream does not stop the engine",
        "dg_lsp/serving/service.py",
        "                work.cancel()\n                await asyncio.gather(work, return_exceptions=True)",
        "                pass",
        "tests/serving/test_service.py::test_cancelling_an_answer_stops_the_engine",
    ),
    Mutant(
        6,
        "the loop goes on when it is closed",
        "dg_lsp/model/denoise.py",
        "        yield replace(\n            state.step(number),",
        "        try:\n            yield None\n        except GeneratorExit:\n            continue\n"
        "        yield replace(\n            state.step(number),",
        "tests/model/test_denoise.py::test_closing_the_loop_stops_the_network",
    ),
    Mutant(
        7,
        "an engine that died is not started again",
        "dg_lsp/engine/resident.py",
        "                if again:\n                    await self.start()\n",
        "                if again:\n",
        "tests/engine/test_resident.py::test_the_first_request_starts_it_and_the_second_finds_it",
    ),
    Mutant(
        7,
        "a cancelled request ends the start that others wait for",
        "dg_lsp/engine/resident.py",
        "return await asyncio.shield(self._starting)",
        "return await self._starting",
        "tests/engine/test_resident.py::"
        "test_a_request_that_is_cancelled_while_the_engine_starts_does_not_begin_a_second_start",
    ),
    Mutant(
        7,
        "a death counts once for each request that was open",
        "dg_lsp/engine/http.py",
        "        if count != self.count:\n            return False\n",
        "",
        "tests/engine/test_resident.py::test_one_death_is_one_failure_however_many_requests_are_open",
    ),
    Mutant(
        7,
        "an engine that hangs is noticed by a request that waits only",
        "dg_lsp/engine/resident.py",
        "if self._listening is None:",
        "if False:",
        "tests/engine/test_resident.py::test_an_engine_that_hangs_is_noticed_though_no_request_waits_long",
    ),
    Mutant(
        7,
        "an engine whose libraries have failed for good goes on",
        "dg_lsp/engine/local.py",
        "                    raise EngineBroken(_ENDS) from error\n",
        "                    raise EngineError(_ENDS) from error\n",
        "tests/engine/test_local.py::test_where_the_libraries_do_not_recover_the_engine_is_broken",
    ),
    Mutant(
        7,
        "an engine whose libraries go on by a slow way is kept",
        "dg_lsp/engine/local.py",
        '    warnings.filterwarnings("error", r"mkldnn_\\w+ failed")\n',
        "",
        "tests/engine/test_scarce.py::test_an_engine_whose_libraries_go_on_by_a_slow_way_ends",
    ),
    Mutant(
        7,
        "deaths that are minutes apart count as following each other",
        "dg_lsp/engine/http.py",
        "1 if accident else self._in_a_row + 1",
        "self._in_a_row + 1",
        "tests/engine/test_backoff.py::test_the_pause_grows_with_failures_that_follow_each_other_only",
    ),
    Mutant(
        11,
        "a parser that never ends is waited for",
        "dg_lsp/source/recovery.py",
        "raise Unreadable\n        return False",
        "pass\n        return False",
        BUDGET + "test_a_parser_that_hangs_is_noticed_before_a_long_budget_is_spent",
    ),
    Mutant(
        11,
        "a file that cannot be read in time is not read in part",
        "dg_lsp/budget.py",
        "    except Unreadable:\n        return None",
        "    except Unreadable:\n        raise",
        "tests/source/test_near.py::test_a_file_that_cannot_be_read_in_time_is_filled_by_a_part_of_it",
    ),
    Mutant(
        11,
        "the budget of a request is not looked at",
        "dg_lsp/budget.py",
        "return self.budget.cancelled or (now - self.began > most and thread_time() - self.clock > most)",
        "return self.budget.cancelled",
        BUDGET + "test_one_budget_is_spent_by_all_the_work_of_a_request",
    ),
    Mutant(
        11,
        "a scanner may look ahead for as long as it likes",
        "dg_lsp/source/recovery.py",
        "over = over or work.is_over(monotonic())",
        "over = False",
        BUDGET + "test_a_scanner_that_looks_ahead_at_each_place_is_stopped",
    ),
    Mutant(
        11,
        "a scanner that does not notice the end of its text reads on where the time is over",
        "dg_lsp/source/recovery.py",
        "ends = at == (last if over and not size else len(data))",
        "ends = at == len(data)",
        "tests/source/test_scanners.py::test_no_scanner_looks_forever_for_what_does_not_come",
    ),
    Mutant(
        11,
        "errors in which a parser keeps several readings are not counted",
        "dg_lsp/source/recovery.py",
        "if self.errors > _MOST_ERRORS:",
        "if False:",
        BUDGET + "test_the_last_step_of_a_parser_takes_no_seconds",
    ),
    Mutant(
        6,
        "the thread of a cancelled request works on",
        "dg_lsp/budget.py",
        "if self.budget.cancelled:",
        "if False:",
        BUDGET + "test_a_refused_request_has_been_cancelled",
    ),
    Mutant(
        11,
        "half a word is looked for in the whole line",
        "dg_lsp/gaps/words.py",
        "data[max(cursor - _LONGEST - 1, 0) : cursor]",
        "data[:cursor]",
        "tests/gaps/test_words.py::test_half_a_word_costs_nothing_in_a_long_line",
    ),
    Mutant(
        6,
        "the eleventh request of a window waits for the first ten",
        "dg_lsp/engine/client.py",
        "max_connections=None,",
        "max_connections=10,",
        "tests/engine/test_resident.py::test_a_request_waits_for_no_other_of_its_window",
    ),
    Mutant(
        8,
        "a stray print goes to the client",
        "dg_lsp/server/rpc/streams.py",
        "    os.dup2(2, numbers[1])\n    sys.stdout = sys.stderr",
        "    pass",
        "tests/server/test_streams.py::test_a_stray_print_does_not_reach_the_client",
    ),
    Mutant(
        8,
        "an error of the engine quotes the text",
        "dg_lsp/serving/service.py",
        "met an error of its own ({type(error).__name__})",
        "met an error of its own ({error})",
        "tests/serving/test_service.py::test_an_error_of_the_engine_is_the_last_line",
    ),
    Mutant(
        7,
        "the engine stays in the session of its window",
        "dg_lsp/processes.py",
        "    os.setsid()\n",
        "",
        "tests/engine/test_resident.py::test_an_engine_is_no_windows_child_and_outlives_its_group",
    ),
    Mutant(
        6,
        "a bot's fill is not interrupted by ghost text",
        "dg_lsp/engine/turn.py",
        "return (seat.rank, not finishes, window, document, -seat.number)",
        "return (0, False, window, document, seat.number)",
        "tests/engine/test_turn.py::test_ghost_text_waits_for_one_step_of_a_bot_and_then_makes_all_of_its_own",
    ),
    Mutant(
        9,
        "what is too late before its first turn is computed all the same",
        "dg_lsp/engine/local.py",
        "        if waited > request.deadline and self._turns.waiting:\n",
        "        if waited > 3600:\n",
        "tests/engine/test_local.py::test_what_was_too_late_before_its_first_turn_is_answered_with_that_reason",
    ),
    Mutant(
        7,
        "an engine that hangs is left alone",
        "dg_lsp/serving/service.py",
        "return still if still > max(self._engine.patience, usual) else 0.0",
        "return 0.0",
        "tests/serving/test_service.py::test_an_engine_without_a_step_for_long_says_so_to_who_waits_and_ends",
    ),
    Mutant(
        9,
        "how the last request ended is not told",
        "dg_lsp/server/status.py",
        "            self._timer = loop.call_at(",
        "            self._timer = loop.call_at(1e9 + ",
        "tests/server/test_app.py::test_how_each_request_ended_is_told_and_the_last_one_is_never_lost",
    ),
    Mutant(
        9,
        "an empty answer has no reason",
        "dg_lsp/filling/fill.py",
        'None, _late(fill, fill.refusal or "the model left the gap empty"))',
        'None, "")',
        "tests/filling/test_fill.py::test_an_empty_fill_keeps_its_reason",
    ),
    Mutant(
        10,
        "what was typed goes without being asked for",
        "dg_lsp/guard/harm.py",
        "if gap.asked and not is_stub:",
        "if not is_stub:",
        GUARD + "test_typed_text_stays",
    ),
    Mutant(
        11,
        "so many open brackets are read as any others",
        "dg_lsp/gaps/find.py",
        "if length < LONGEST_LINE and _most_open(data, low, offset) < MOST_OPEN:",
        "if length < LONGEST_LINE:",
        "tests/source/test_bounds.py::test_only_a_text_of_strange_shape_is_read_in_part",
    ),
    Mutant(
        3,
        "a text that is read with others sees them",
        "dg_lsp/model/tree.py",
        "seen[row] = seen[before - first]",
        "seen[row] = True",
        "tests/model/test_beam.py::test_texts_that_are_read_together_have_the_states_of_whole_texts",
    ),
    Mutant(
        3,
        "what a search drops are tokens that it still uses",
        "dg_lsp/model/tree.py",
        "layer.keep(used)",
        "layer.keep([column - 1 for column in used])",
        "tests/model/test_beam.py::test_tokens_that_no_text_goes_on_from_are_dropped_in_time",
    ),
    Mutant(
        3,
        "a causal network with windows sees everything",
        "dg_lsp/model/cache.py",
        "return [window] * text_config.num_hidden_layers",
        "return [None] * text_config.num_hidden_layers",
        "tests/model/test_causal.py::test_a_prefix_in_a_cache_gives_the_logits_of_a_whole_pass",
    ),
    Mutant(
        3,
        "few slots see what is masked",
        "dg_lsp/model/networks/attention.py",
        "scores = scores.masked_fill_(~mask, -torch.inf) if mask.dtype == torch.bool else scores.add_(mask)",
        "pass",
        "tests/model/test_attention.py::test_the_result_is_that_of_transformers",
    ),
    Mutant(
        3,
        "an import loses the scale of a norm",
        "dg_lsp/training/importing.py",
        "layer.post_feedforward_layernorm.weight.fill_(_ROOT * scale)",
        "layer.post_feedforward_layernorm.weight.fill_(_ROOT * scale * 1.01)",
        "tests/training/test_importing.py::test_the_encoder_and_a_canvas_of_one_slot_give_the_logits_of_the_source",
    ),
    Mutant(
        11,
        "who has no token keeps a connection of a team's server",
        "dg_lsp/serving/door.py",
        "self._stay = self.loop.call_later(_STRANGER, self.drop)",
        "self._stay = None",
        "tests/serving/test_door.py::test_who_has_no_token_keeps_no_connection",
    ),
    Mutant(
        11,
        "a header's alignment is taken as it is",
        "dg_lsp/model/networks/gguf_file.py",
        "if type(alignment) is not int or not 0 < alignment <= _GREATEST:",
        "if False:",
        "tests/model/test_sound.py::test_a_header_that_cannot_be_is_refused_with_little_memory",
    ),
    Mutant(
        11,
        "the next run of a process reads the text that crashed it",
        "dg_lsp/engine/fatal.py",
        "if text in self._known:",
        "if False:",
        "tests/engine/test_fatal.py::test_a_text_that_crashed_a_process_is_not_read_by_the_next_ones",
    ),
    Mutant(
        11,
        "a large message is read in one go",
        "dg_lsp/server/rpc/envelope.py",
        "if in_pieces:",
        "if False:",
        "tests/server/test_loop.py::test_other_threads_run_while_a_large_message_is_read",
    ),
    Mutant(
        12,
        "text is read before the settings are known",
        "dg_lsp/server/handlers/lifecycle.py",
        "context.workspace.expect_settings()",
        "pass",
        PROTECTION + "test_nothing_is_read_before_the_settings_are_known",
    ),
    Mutant(
        12,
        "a server gets text although no settings were reported",
        "dg_lsp/server/workspace.py",
        "if self.unknown and self.settings.engine_url:",
        "if False:",
        PROTECTION + "test_without_an_answer_only_a_model_of_this_machine_is_used",
    ),
    Mutant(
        12,
        "an answer that says nothing takes the settings back",
        "dg_lsp/server/settings.py",
        "return {given: value for given, value in known.items() if name_of(given) in (*_LISTS, *_ON)}, []",
        "return {}, []",
        PROTECTION + "test_an_answer_that_says_nothing_takes_nothing_back",
    ),
    Mutant(
        12,
        "a server gets names of files",
        "dg_lsp/filling/leaving.py",
        "if not settings.engine_url:",
        "if True:",
        PROTECTION + "test_a_server_learns_no_name_of_a_file_and_a_model_of_this_machine_does",
    ),
    Mutant(
        12,
        "a request has the text that an edit has removed",
        "dg_lsp/edits/related.py",
        "word[0] if word[0] in known else _GONE",
        "word[0]",
        PROTECTION + "test_a_text_that_was_removed_reaches_no_model",
    ),
    Mutant(
        12,
        "a file is read by rules of git that have changed since",
        "dg_lsp/filling/project.py",
        "if stamp is None or (rules.git and ignored(path.parent, [path])):",
        "if stamp is None:",
        "tests/filling/test_project.py::test_rules_of_git_that_change_just_before_a_file_is_read_hold_for_it",
    ),
    Mutant(
        12,
        "the left side of a diff is read",
        "dg_lsp/server/workspace.py",
        'if reason := next(filter(None, map(no_file, notebooks or (uri,))), ""):',
        "if False:",
        PROTECTION + "test_a_view_gets_nothing_and_its_text_is_in_no_request",
    ),
    Mutant(
        12,
        "what git ignores is asked once for each document",
        "dg_lsp/server/refusals.py",
        "if known is None or known[0] != stamp:",
        "if known is None:",
        PROTECTION + "test_what_git_ignores_later_is_sent_no_more",
    ),
    Mutant(
        12,
        "what git ignores is asked once for each indexed file",
        "dg_lsp/filling/project.py",
        "return (*found, rules_stamp(path.parent)) if found is not None and self.git else found",
        "return found",
        PROTECTION + "test_what_git_ignores_later_is_sent_no_more",
    ),
    Mutant(
        12,
        "a cell that is taken out is of no notebook",
        "dg_lsp/server/notebooks.py",
        "self._holding |= {",
        "self._holding = {",
        "tests/server/test_notebooks.py::test_a_cell_that_is_moved_in_two_steps_stays_in_its_notebook",
    ),
    Mutant(
        14,
        "a workspace switches on what the user has switched off",
        "dg_lsp/server/settings.py",
        "if (name in _OFF and its and not user) or (",
        "if (",
        PROTECTION + "test_a_workspace_adds_protection_and_lifts_none",
    ),
    Mutant(
        14,
        "a workspace empties the list of languages that are off",
        "dg_lsp/server/settings.py",
        "disabled_languages=tuple(dict.fromkeys((*user, *its)))",
        "disabled_languages=its",
        PROTECTION + "test_a_workspace_adds_protection_and_lifts_none",
    ),
    Mutant(
        12,
        "the path of a checkpoint is in the counts",
        "dg_lsp/server/uses.py",
        'return name if name in (EMBEDDED, *OFFERED) or is_hub_name(name) else "of a folder"',
        "return name",
        "tests/server/test_uses.py::test_counts_of_two_servers_equal_what_500_keys_did",
    ),
    Mutant(
        12,
        "a line is offered that does not surely follow from an edit",
        "dg_lsp/model/sources/rewritten.py",
        "if gain + _IN_FILE * fits >= _GAIN or fits >= _ALONE:",
        "if gain:",
        "tests/model/test_rewritten.py::test_lines_that_gain_too_little_after_the_edits_and_in_the_file_are_not_offered",
    ),
    Mutant(
        12,
        "an edit is repeated in a line that makes all of them no likelier",
        "dg_lsp/model/sources/rewritten.py",
        "if min(others, default=before) - after < _EACH:",
        "if before - after < _EACH:",
        "tests/model/test_rewritten.py::test_lines_that_are_given_are_rated_with_each_of_them_left_out",
    ),
    Mutant(
        12,
        "an excluded document is searched for the next edit",
        "dg_lsp/server/handlers/next_edit.py",
        "others = context.workspace.beside(source)",
        "others = [d for u in context.workspace.documents.uris() if (d := context.workspace.documents.snapshot(u))]",
        "tests/server/test_next_edit.py::test_excluded_and_closed_documents_are_not_read",
    ),
    Mutant(
        12,
        "the text of a closed document stays",
        "dg_lsp/server/project.py",
        "            self._open -= {key_of(uri)}\n            self.index.drop(uri)\n",
        "            pass\n",
        PRIVACY + "test_the_text_of_a_document_that_was_closed_unsaved_is_sent_no_more",
    ),
    Mutant(
        12,
        "a file is used without a look at the disk",
        "dg_lsp/context/retrieve.py",
        "if all(map(index.still_has, used.values())):",
        "if True:",
        PRIVACY + "test_a_file_that_changed_or_is_gone_is_sent_as_it_is_now",
    ),
    Mutant(
        12,
        "links are not followed",
        "dg_lsp/files/excluded.py",
        'target = _target(at) if links < _LINKS else ""',
        'target = ""',
        PRIVACY + "test_a_link_is_excluded_as_what_it_names_is_and_as_it_is_called",
    ),
    Mutant(
        12,
        "the name of a workspace's folder does not count",
        "dg_lsp/files/excluded.py",
        'names[inside] = names[f"{posixpath.basename(base)}/{inside}"] = None',
        "names[inside] = None",
        "tests/files/test_excluded.py::test_a_file_has_the_names_that_each_folder_gives_it",
    ),
    Mutant(
        12,
        "addresses are compared as they are spelled",
        "dg_lsp/context/index.py",
        "family, own = family_of(load_language(language).name), key_of(uri)",
        "family, own = family_of(load_language(language).name), uri",
        PRIVACY + "test_addresses_of_the_same_file_are_one",
    ),
    Mutant(
        12,
        "a key of another file is a candidate",
        "dg_lsp/context/retrieve.py",
        "if id(rows) in others and text.strip().encode() not in document.data:",
        "if False:",
        "tests/context/test_secrets.py::test_no_secret_of_another_file_is_retrieved",
    ),
    Mutant(
        12,
        "a definition is sent with its password",
        "dg_lsp/context/definitions.py",
        "redacted(text))",
        "text)",
        "tests/context/test_secrets.py::test_definitions_are_sent_without_their_secrets",
    ),
    Mutant(
        12,
        "fill reads an excluded file",
        "dg_lsp/cli/fill.py",
        "    check_wanted(target.path, settings)\n",
        "",
        "tests/cli/test_main.py::test_an_excluded_file_is_not_read_under_any_of_its_names",
    ),
    Mutant(
        12,
        "recent edits of an excluded document are sent",
        "dg_lsp/server/workspace.py",
        "        found = {one.uri: one for one in self.beside(document)}\n",
        "        found = {u: one for u in self.documents.uris() if (one := self.documents.snapshot(u))}\n",
        PRIVACY + "test_recent_edits_of_other_documents_are_sent_as_long_as_these_are_open_and_not_excluded",
    ),
    Mutant(
        12,
        "recent edits with a secret are sent",
        "dg_lsp/context/recent.py",
        "if own and not has_secret(document.data, document.line_starts[first], document.line_end(own[-1])):",
        "if own:",
        "tests/context/test_recent.py::test_lines_with_a_secret_and_those_in_another_language_are_left_out",
    ),
    Mutant(
        5,
        "an edit for a file that has changed meanwhile is sent",
        "dg_lsp/server/workspace.py",
        "            return found.state == document.state and self.documents.state(uri) is None\n",
        "            return found is not None\n",
        "tests/server/test_current.py::test_a_file_that_becomes_another_one_meanwhile_is_not_edited",
    ),
    Mutant(
        11,
        "a large message is read on the event loop",
        "dg_lsp/server/rpc/conversation.py",
        "message = data if len(data) > _LARGE else self._parsed(data)",
        "message = self._parsed(data)",
        "tests/server/test_loop.py::test_the_loop_does_not_stand",
    ),
    Mutant(
        12,
        "a cell of an excluded notebook is read",
        "dg_lsp/server/workspace.py",
        'for one, its in ((uri, language), *((notebook, "") for notebook in notebooks)):',
        "for one, its in ((uri, language),):",
        "tests/server/test_notebooks.py::test_a_cell_of_an_excluded_notebook_is_not_read",
    ),
    Mutant(
        12,
        "the cells of a closed notebook stay",
        "dg_lsp/server/rpc/protocol.py",
        "        return self._cells_changed(params, known)\n",
        "        return asyncio.sleep(0, known)\n",
        "tests/server/test_notebooks.py::test_a_closed_notebook_leaves_and_others_are_not_above",
    ),
    Mutant(
        5,
        "a fill of a plain language closes what it did not open",
        "dg_lsp/guard/loose.py",
        "if place.language.is_plain and now.lacking - was.lacking:",
        "if not now:",
        "tests/guard/test_plain.py::test_what_would_break_the_file_is_refused",
    ),
    Mutant(
        5,
        "a fill may leave a comment open",
        "dg_lsp/guard/loose.py",
        'return first, "an unclosed comment"',
        "continue",
        "tests/guard/test_loose.py::test_no_fill_leaves_anything_open_or_closes_what_is_not_open",
    ),
    Mutant(
        5,
        "a fill may leave a string open where a grammar accepts it",
        "dg_lsp/guard/loose.py",
        "            if first < end and not _is_closed_below(place, first):",
        "            if first < 0:",
        "tests/guard/test_loose.py::test_no_fill_leaves_anything_open_or_closes_what_is_not_open",
    ),
    Mutant(
        5,
        "a fill writes again what follows in its list",
        "dg_lsp/guard/fit.py",
        "    for wanted in (data, data[:end]):",
        "    for wanted in (data,):",
        "tests/guard/test_loose.py::test_what_follows_in_a_list_is_not_written_twice",
    ),
    Mutant(
        5,
        "what a grammar accepts and its plain language does not is shown",
        "dg_lsp/guard/plain.py",
        "    if (own and not _is_open(site, fill)) or len(refused) > len(",
        "    if (own and not _is_open(site, fill)) or len(()) > len(",
        "tests/source/test_misplaced.py::test_a_statement_is_refused_where_the_language_has_none",
    ),
    Mutant(
        5,
        "any word begins a statement",
        "dg_lsp/guard/statements.py",
        "return any(code and code != left and not language.plain.begins.match(code) for code in made)",
        "return False",
        "tests/source/test_misplaced.py::test_a_statement_is_refused_where_the_language_has_none",
    ),
    Mutant(
        5,
        "a statement takes in the one below it",
        "dg_lsp/guard/statements.py",
        "return site.language.plain.begins.match(_code(site.language, own.after)) is not None",
        "return False",
        "tests/guard/test_plain.py::test_a_statement_of_sql_ends_before_the_one_below_it",
    ),
    Mutant(
        5,
        "half a statement is ended",
        "dg_lsp/guard/statements.py",
        'return failed == "detect_error lookahead:;"',
        "return False",
        "tests/guard/test_plain.py::test_a_statement_of_sql_ends_before_the_one_below_it",
    ),
    Mutant(
        5,
        "a name stands twice where it may stand once",
        "dg_lsp/source/misplaced.py",
        "counts[n.parent.id][_name(n)] > 1",
        "counts[n.parent.id][_name(n)] < 0",
        "tests/source/test_misplaced.py::test_a_statement_is_refused_where_the_language_has_none",
    ),
    Mutant(
        5,
        "what a fill makes of the text after it is not looked at",
        "dg_lsp/guard/compare.py",
        "span = text.start, max(text.end, text.start + 1, stop)",
        "span = text.start, max(text.end, text.start + 1)",
        "tests/source/test_misplaced.py::test_a_statement_is_refused_where_the_language_has_none",
    ),
    Mutant(
        5,
        "a sign of a directive stands in code",
        "dg_lsp/source/directives.py",
        'return f"`{sign.decode()}` in code" if is_stray else ""',
        'return ""',
        "tests/source/test_misplaced.py::test_a_statement_is_refused_where_the_language_has_none",
    ),
    Mutant(
        5,
        "half a call is closed as if it were a block",
        "dg_lsp/guard/endings.py",
        'or (own and text.rstrip().endswith(",")):',
        "or False:",
        "tests/guard/test_below.py::test_blocks_are_closed_on_lines_of_their_own",
    ),
    Mutant(
        5,
        "a statement below a return is written",
        "dg_lsp/source/lexer.py",
        "above = place if is_last(language, data, token.start) else None",
        "above = None",
        "tests/guard/test_below.py::test_nothing_follows_a_shown_statement_that_ends_its_block",
    ),
    Mutant(
        6,
        "a block that would be empty is shown at the deadline",
        "dg_lsp/model/sources/below.py",
        "needed=not _stands_alone(task.request, one)",
        "needed=False",
        "tests/model/test_below.py::test_a_block_that_would_be_empty_at_the_deadline_is_waited_for",
    ),
    Mutant(
        5,
        "an item takes in the statement after it",
        "dg_lsp/guard/endings.py",
        "if number and line.width <= base and",
        "if number and line.width < base and",
        "tests/guard/test_below.py::test_an_item_ends_before_the_first_line_that_is_no_deeper",
    ),
    Mutant(
        5,
        "a fill of a plain language adds an error",
        "dg_lsp/guard/plain.py",
        "    errors, refused = errors_of(new.root_node), _refused(language, new, span)",
        "    errors, refused = [], _refused(language, new, span)",
        "tests/guard/test_plain.py::test_what_would_break_the_file_is_refused",
    ),
    Mutant(
        11,
        "what a client asks is not bounded",
        "dg_lsp/engine/wire.py",
        'if isinstance(record, Infill) and (fault := next(_faults(record), "")):',
        "if isinstance(record, Infill) and (fault := ''):",
        "tests/engine/test_wire.py::test_every_field_of_a_request_is_bounded",
    ),
    Mutant(
        11,
        "the event loop reads the document",
        "dg_lsp/filling/fill.py",
        "outcome = await asyncio.to_thread(finish, document, gap, fill)",
        "outcome = finish(document, gap, fill)",
        "tests/filling/test_fill.py::test_no_text_is_read_on_the_event_loop",
    ),
    Mutant(
        15,
        "a closed terminal ends a trial as it is",
        "dg_lsp/files/writing.py",
        "ENDING = (signal.SIGHUP, ",
        "ENDING = (",
        "tests/cli/test_bot.py::test_a_closed_terminal_takes_a_trial_back",
    ),
    Mutant(
        15,
        "a copy has its name before it is whole",
        "dg_lsp/files/writing.py",
        "        _pour(handle, text)\n",
        "        _name(part, kept.copy)\n        _pour(handle, text)\n        kept.copy.unlink()\n",
        "tests/files/test_writing.py::test_a_copy_has_its_name_only_once_it_is_whole",
    ),
    Mutant(
        15,
        "a file with two names is not put back",
        "dg_lsp/files/writing.py",
        "            _pour(handle, old)\n",
        "",
        "tests/files/test_writing.py::test_a_file_with_two_names_is_put_back_or_its_copy_is_named",
    ),
    Mutant(
        15,
        "a fill that lost a line stays in a file with other fills",
        "dg_lsp/source/undo.py",
        "change = change.widened()",
        "pass",
        "tests/source/test_undo.py::test_a_fill_that_is_another_one_with_more_lines_is_replaced",
    ),
    Mutant(
        5,
        "a branch is written below another `else`",
        "dg_lsp/source/directives.py",
        "late += opened[-1]",
        "late += 0",
        "tests/source/test_directives.py::test_a_condition_has_one_else_below_its_other_branches",
    ),
    Mutant(
        15,
        "taking back writes over what a person has saved",
        "dg_lsp/cli/trial.py",
        "undone = _without(change, now)",
        "undone = change.before if now else None",
        "tests/cli/test_bot.py::test_what_a_person_saves_during_a_trial_stays_and_the_fill_goes",
    ),
    Mutant(
        15,
        "a text that was cut off replaces what is written",
        "dg_lsp/cli/fill.py",
        'unwhole = outcome.fill.shortened or outcome.fill.reason == "deadline"',
        "unwhole = False",
        "tests/cli/test_main.py::test_a_text_that_was_cut_off_replaces_no_written_lines",
    ),
    Mutant(
        15,
        "a marked body that a person has changed is filled again",
        "dg_lsp/filling/stubs.py",
        " and _digest(body).encode() in first",
        "",
        "tests/filling/test_stubs.py::test_a_marked_body_is_a_stub_until_somebody_changes_it",
    ),
    Mutant(
        15,
        "a second bot does not see the first",
        "dg_lsp/files/writing.py",
        "fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        "tests/files/test_writing.py::test_another_process_is_told_who_holds_the_copy",
    ),
    Mutant(
        11,
        "a text is parsed that the grammar's scanner cannot hold",
        "dg_lsp/source/language.py",
        "text = self.readable(data)\n        check_depth(self.scanner, text)",
        "text = self.readable(data)",
        SCANNERS + "test_no_deep_text_ends_the_process_that_reads_it",
    ),
    Mutant(
        11,
        "an edit is parsed that the grammar's scanner cannot hold",
        "dg_lsp/source/language.py",
        "        check_depth(self.scanner, new)\n",
        "",
        SCANNERS + "test_no_edit_that_makes_a_text_deep_ends_the_process",
    ),
    Mutant(
        11,
        "many names of heredocs stay long",
        "dg_lsp/source/language.py",
        "text = with_short_names(self.scanner, text)",
        "pass",
        SCANNERS + "test_no_deep_text_ends_the_process_that_reads_it",
    ),
    Mutant(
        11,
        "a search for words in sight never looks at the time",
        "dg_lsp/gaps/words.py",
        "        check()\n",
        "",
        "tests/test_budget.py::test_words_in_sight_are_looked_for_within_a_budget_whatever_is_never_closed",
    ),
    Mutant(
        11,
        "deeply nested trees are compared",
        "dg_lsp/source/language.py",
        "        _check_nesting(new, span[0])\n",
        "",
        "tests/test_budget.py::test_an_edit_of_thousands_of_nested_labels_is_checked_within_a_budget",
    ),
    Mutant(
        11,
        "each parse keeps its text for ever",
        "dg_lsp/source/recovery.py",
        "        return chunk",
        "        return bytearray(chunk)",
        SCANNERS + "test_a_parse_keeps_no_memory",
    ),
    Mutant(
        11,
        "a text that crashed the engine is sent again",
        "dg_lsp/engine/resident.py",
        "if self._fatal and hash_of(request) in self._fatal:",
        "if False:",
        "tests/engine/test_resident.py::test_a_text_that_crashed_the_engine_is_not_sent_again_until_it_changes",
    ),
    Mutant(
        14,
        "programs start in the workspace's folder",
        "dg_lsp/processes.py",
        'AWAY = Path("/")',
        "AWAY = Path()",
        "tests/test_processes.py::test_a_program_of_ours_starts_elsewhere",
    ),
    Mutant(
        14,
        "programs are found in relative folders",
        "dg_lsp/processes.py",
        "filter(os.path.isabs, folders",
        "filter(None, folders",
        HOSTILE + "test_a_fetch_runs_nothing_of_the_folder_it_is_started_in",
    ),
    Mutant(
        14,
        "uv takes the Python and the settings of its folder",
        "dg_lsp/training/packages.py",
        'ours = ["--no-config", "--python", sys.executable]',
        "ours = list[str]()",
        "tests/training/test_packages.py::test_without_pip_uv_is_asked_the_same_and_without_both_it_says_so",
    ),
    Mutant(
        14,
        "a name's control characters reach the terminal",
        "dg_lsp/source/shown.py",
        "return _CONTROL.sub(",
        "return text or _CONTROL.sub(",
        "tests/cli/test_shown.py::test_sentences_findings_errors_and_logs_control_nothing",
    ),
    Mutant(
        11,
        "git's rules are read on the event loop",
        "dg_lsp/server/refusals.py",
        "        stamps = await run(lambda: {folder: rules_stamp(folder) for folder in old})",
        "        stamps = {folder: rules_stamp(folder) for folder in old}",
        PROTECTION + "test_the_files_of_gits_rules_are_never_read_on_the_event_loop",
    ),
    Mutant(
        14,
        "a name's control characters reach the client",
        "dg_lsp/server/rpc/envelope.py",
        "        return sentence(message)\n",
        "        return message\n",
        "tests/server/test_said.py::test_no_message_controls_anything_where_it_is_shown",
    ),
    Mutant(
        14,
        "a file's name is taken for an option",
        "dg_lsp/cli/main.py",
        'word.startswith("-") and len(word) > 1 and lexists(word)',
        'word.startswith("-") and len(word) > 99 and lexists(word)',
        "tests/cli/test_bot.py::test_a_word_that_is_an_option_and_a_file_is_refused",
    ),
)


def places_of(code: str, text: str, suffix: str = ".py") -> list[tuple[int, int]]:
    """Return where `code` is in `text`, by its tokens: line ends, indentation, comments and last commas are left out.

    By its letters in a file of another language, or within a string.
    """
    wanted, found = (_tokens(part) if suffix == ".py" else [] for part in (code, text))
    words, size = [word for word, _, _ in wanted], len(wanted)
    at = [n for n in range(len(found) - size + 1) if [word for word, _, _ in found[n : n + size]] == words]
    if not (at and words):
        return [(m.start(), m.end()) for m in re.finditer(re.escape(code), text)]
    return [(found[n][1], found[n + size - 1][2]) for n in at]


def broken(mutant: Mutant, text: str) -> str:
    """Return `text`, which holds the code of `mutant` once, with what is to be in its place."""
    ((start, end),) = places_of(mutant.old, text, Path(mutant.file).suffix)
    new = mutant.new.strip() if text[start:end] != mutant.old else mutant.new
    return text[:start] + new + text[end:]


def _tokens(text: str) -> list[tuple[str, int, int]]:
    """Return the tokens of Python's `text`, a file or a part of it, and the span of each; [] if it ends within one."""
    opened = "(" * 9  # in brackets, more than a part may close, no indentation is wrong
    starts = [-len(opened), *accumulate(map(len, text.splitlines(keepends=True)))]
    found = list[tuple[str, int, int]]()
    try:
        for token in tokenize.generate_tokens(io.StringIO(opened + text).readline):
            if token.type == tokenize.ERRORTOKEN and token.string.strip():
                return []
            if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP):
                if token.string in (")", "]", "}") and found and found[-1][0] == ",":
                    found.pop()
                start, end = (starts[line - 1] + column for line, column in (token.start, token.end))
                found.append((token.string, start, end))
    except (tokenize.TokenError, IndentationError):
        pass  # the brackets are not closed: all tokens have come
    return found[len(opened) :]


def survives(mutant: Mutant) -> str:
    """Empty when the mutant is killed as it should be, else what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        left_out = shutil.ignore_patterns(".*", "runs", "dist", "node_modules")
        shutil.copytree(ROOT, copy, ignore=left_out)
        file = copy / mutant.file
        text = file.read_text(encoding="utf-8")
        file.write_text(broken(mutant, text), encoding="utf-8")
        said = Path(folder) / "said"
        process = PROCESSES.Process(target=run_test, args=(mutant.test, copy, said))
        process.start()
        process.join(LIMIT)
        if process.is_alive():
            process.kill()
            return ""
        lines = said.read_text(encoding="utf-8").splitlines() or [""]
        # 1 is "tests ran and some failed"; a test that is not found or cannot be imported kills nothing.
        if process.exitcode != 1 or "error" in lines[-1]:
            return f"{mutant.test} ended with {process.exitcode}:\n" + "\n".join(lines[-12:])
        return ""


def run_test(test: str, tree: Path, said: Path) -> None:
    """Run the `test` of the tree in this process, and exit with pytest's code; `said` gets its output."""
    os.chdir(tree)
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    # Without the folder of this file, in which modules of the tree would have two names.
    sys.path[:] = [str(tree), *(path for path in sys.path if Path(path) != ROOT / "tests")]
    sys.dont_write_bytecode = True
    import pytest  # noqa: PLC0415 - it is forked, not imported

    with said.open("w", encoding="utf-8") as output, redirect_stdout(output), redirect_stderr(output):
        code = pytest.main(["-x", "-p", "no:cacheprovider", test])
    sys.exit(code)


def timed(mutant: Mutant) -> tuple[str, float]:
    """What `survives` says, and the seconds that it took."""
    start = time.perf_counter()
    return survives(mutant), time.perf_counter() - start


def main() -> int:
    """Run the mutants, one more at once than there are cores, since some wait; 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="run mutants whose name holds this text")
    chosen = [m for m in MUTANTS if parser.parse_args().only in f"law {m.law}: {m.name}"]
    failed = 0
    # torch reads the first when it is imported, tests/waiting.py the second.
    os.environ |= {"OMP_NUM_THREADS": "1", "TESTS_PATIENCE": str(PATIENCE)}
    PROCESSES.set_forkserver_preload(LIBRARIES)
    with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
        for mutant, (wrong, seconds) in zip(chosen, pool.map(timed, chosen), strict=True):
            failed += bool(wrong)
            state = "SURVIVED" if wrong else "killed  "
            print(f"{state} {seconds:5.1f} s  law {mutant.law}: {mutant.name}  {wrong}", flush=True)
    print(f"{len(chosen) - failed} killed, {failed} survived")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    raise SystemExit(main())
