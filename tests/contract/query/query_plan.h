// QueryPlan: what PostgreSQL did for one statement, by EXPLAIN (ANALYZE, BUFFERS), and what of it a
// query of one trial must not do. Header only.
//
//   const QueryPlan plan = ExplainQuery(*connection, statement);
//   EXPECT_EQ(plan.Complaints(leaves), std::vector<std::string>());
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/pg_connection.h"
#include "tests/support/sql_of.h"

namespace stepwell {

struct QueryPlan {
  // One node that reads a table or a leaf.
  struct Scan {
    std::string node;
    std::string table;
    std::string condition;  // of its index
    double loops = 0;
    double rows = 0;  // that it looked at, in all loops
  };

  std::vector<Scan> scans;
  double cost = 0;
  double buffers = 0;

  double rows() const {
    double all = 0;
    for (const Scan& scan : scans) all += scan.rows;
    return all;
  }
  double loops() const {
    double all = 0;
    for (const Scan& scan : scans) all += scan.loops;
    return all;
  }

  // Scans that are not of one trial's rows by an index, and leaves other than `leaves`, those in which the
  // trial has rows. A page of trials goes by their age.
  std::vector<std::string> Complaints(const std::set<std::string>& leaves,
                                      bool is_list_of_trials) const {
    std::vector<std::string> complaints;
    for (const Scan& scan : scans) {
      const bool by_index = scan.node == "Index Scan" || scan.node == "Index Only Scan" ||
                            scan.node == "Bitmap Heap Scan";
      if (!by_index) complaints.push_back(absl::StrCat(scan.node, " of ", scan.table));
      const bool keyed =
          absl::StrContains(scan.condition, "trial_id = ") ||
          (scan.table == "trials" && absl::StrContains(scan.condition, "external_id = ")) ||
          (scan.table == "trials" && is_list_of_trials) || scan.table == "projects" ||
          scan.table == "swept_leaves";  // the leaves that the ledger names
      if (!keyed) {
        complaints.push_back(
            absl::StrCat(scan.table, " is not read by trial, but by '", scan.condition, "'"));
      }
      const bool is_leaf = absl::StrContains(scan.table, "_k");
      if (is_leaf && !leaves.contains(scan.table)) {
        complaints.push_back(absl::StrCat(scan.table, " is read, where the trial has no rows"));
      }
    }
    return complaints;
  }
};

inline void CollectScans(const nlohmann::json& node, QueryPlan& plan) {
  if (node.contains("Relation Name")) {
    const double loops = node.value("Actual Loops", 0.0);
    const double seen = node.value("Actual Rows", 0.0) + node.value("Rows Removed by Filter", 0.0) +
                        node.value("Rows Removed by Index Recheck", 0.0);
    plan.scans.push_back({.node = node.at("Node Type"),
                          .table = node.at("Relation Name"),
                          .condition = node.value("Index Cond", node.value("Recheck Cond", "")),
                          .loops = loops,
                          .rows = seen * loops});
  }
  if (!node.contains("Plans")) return;
  for (const auto& below : node.at("Plans")) CollectScans(below, plan);
}

// `params` as a list of literals.
inline std::string LiteralsOf(PgConnection& connection, const std::vector<PgParam>& params) {
  std::vector<std::string> columns;
  for (std::size_t i = 1; i <= params.size(); ++i) {
    columns.push_back(absl::StrCat("quote_nullable($", i, "::text)"));
  }
  const std::string sql = absl::StrCat("select ", absl::StrJoin(columns, " || ', ' || "));
  const auto answer = connection.Exec(SqlOf(sql), params);
  EXPECT_TRUE(answer.ok()) << answer.status() << "\n" << sql;
  return answer.ok() ? std::string(answer->Text(0, 0)) : "";
}

// What to explain of a statement that is kept: planned once, as PgReadLink has it.
inline std::string ExecuteOf(PgConnection& connection, const PgStatement& statement) {
  const auto ran = connection.ExecAll(std::vector<PgStatement>{statement});
  EXPECT_TRUE(ran.ok()) << ran.status() << "\n" << statement.sql.text();
  const auto name = connection.Exec("select name from pg_prepared_statements where statement = $1",
                                    {statement.sql.text()});
  EXPECT_TRUE(name.ok() && name->row_count() == 1) << statement.sql.text();
  if (!name.ok() || name->row_count() == 0) return statement.sql.c_str();
  return absl::StrCat("execute ", std::string(name->Text(0, 0)), "(",
                      LiteralsOf(connection, statement.params), ")");
}

// Runs `statement`; a DECLARE is planned as one, and runs to its end.
inline QueryPlan ExplainQuery(PgConnection& connection, const PgStatement& statement) {
  const bool once = statement.keep && connection.keeps_statements();
  EXPECT_TRUE(connection
                  .ExecScript(SqlOf(
                      absl::StrCat("set plan_cache_mode = ", once ? "force_generic_plan" : "auto",
                                   "; set enable_seqscan = ", once ? "off" : "on")))
                  .ok());
  const std::string sql =
      absl::StrCat("explain (analyze, buffers, timing off, format json) ",
                   once ? ExecuteOf(connection, statement) : std::string(statement.sql.text()));
  const auto answer = connection.Exec(SqlOf(sql), once ? std::vector<PgParam>() : statement.params);
  EXPECT_TRUE(answer.ok()) << answer.status() << "\n" << statement.sql.text();
  if (!answer.ok()) return {};
  const auto explained = nlohmann::json::parse(answer->Text(0, 0)).at(0).at("Plan");
  QueryPlan plan;
  plan.cost = explained.at("Total Cost");
  plan.buffers =
      explained.value("Shared Hit Blocks", 0.0) + explained.value("Shared Read Blocks", 0.0);
  CollectScans(explained, plan);
  return plan;
}

// `few`: the same where a part as much of other trials is stored.
// `descents`: into an index, that another plan for the same rows may take.
inline void ExpectFlat(const QueryPlan& plan, const QueryPlan& few, double descents = 0) {
  // An index may be a page deeper, and a plan another: what it costs is an estimate.
  EXPECT_LE(plan.buffers, 1.05 * few.buffers + 3 * (plan.loops() + descents));
  EXPECT_LE(plan.rows(), 1.05 * few.rows() + plan.loops());
  EXPECT_LE(plan.cost, 3 * few.cost + 10);
}

}  // namespace stepwell
